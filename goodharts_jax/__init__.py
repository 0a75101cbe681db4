"""goodharts_jax."""
