/* The world of goodharts_jax/world.py as a scalar loop: what one core does without JAX.
 *
 * The same physics with the protocol's numbers: a torus with its mirrored margin, a move, a meal, exact
 * regrowth and exact births, every byte of every view read. One action word and one word a candidate
 * cell a step, from xorshift64*. Compiled and called by benchmarks/worlds.py. */
#include <stdint.h>
#include <string.h>

enum { SIZE = 100, RADIUS = 5, VIEW = 2 * RADIUS + 1, SIDE = SIZE + 2 * RADIUS, CELLS = SIZE * SIZE };
enum { EMPTY, FOOD, POISON };
static const int32_t GAIN[3] = {0, 10000, -20000}, COST = 1000, BIRTH = 10000;

typedef struct {
    uint8_t grid[SIDE * SIDE];
    int32_t y, x, energy, age;
} World;

static uint32_t bits(uint64_t *state) {
    *state ^= *state >> 12, *state ^= *state << 25, *state ^= *state >> 27;
    return (uint32_t)((*state * 0x2545F4914F6CDD1DULL) >> 32);
}

/* Below `bound`, each as likely: words above its largest multiple are drawn again. */
static uint32_t below(uint64_t *state, uint32_t bound) {
    uint32_t fair = (uint32_t)(((1ULL << 32) / bound) * bound - 1), word;
    do word = bits(state); while (word > fair);
    return word % bound;
}

static int mirror(int place) { return place < RADIUS ? SIZE : place >= SIZE - RADIUS ? -SIZE : 0; }

static void put(World *world, int y, int x, uint8_t code) {
    int my = mirror(y), mx = mirror(x);
    uint8_t *cell = world->grid + (y + RADIUS) * SIDE + x + RADIUS;
    cell[0] = code;
    if (my) cell[my * SIDE] = code;
    if (mx) cell[mx] = code;
    if (my && mx) cell[my * SIDE + mx] = code;
}

static uint8_t at(const World *world, int y, int x) {
    return world->grid[(y + RADIUS) * SIDE + x + RADIUS];
}

/* A uniform EMPTY cell that isn't (y, x). */
static void draw(const World *world, uint64_t *state, int y, int x, int *to_y, int *to_x) {
    do {
        uint32_t cell = below(state, CELLS);
        *to_y = cell / SIZE, *to_x = cell % SIZE;
    } while (at(world, *to_y, *to_x) != EMPTY || (*to_y == y && *to_x == x));
}

int32_t world_bytes(void) { return sizeof(World); }

void reset(World *worlds, int32_t number, uint64_t *state) {
    for (World *world = worlds; world < worlds + number; world++) {
        memset(world, 0, sizeof(World));
        world->y = below(state, SIZE), world->x = below(state, SIZE), world->energy = BIRTH;
        int counts[3] = {0, 50 + below(state, 151), 20 + below(state, 81)}, y, x;
        for (int kind = FOOD; kind <= POISON; kind++)
            for (int i = 0; i < counts[kind]; i++) {
                draw(world, state, world->y, world->x, &y, &x);
                put(world, y, x, (uint8_t)kind);
            }
    }
}

/* Steps every world `steps` times; tells how many were eaten and how many died; returns a checksum. */
uint64_t roll(World *worlds, int32_t number, int32_t steps, uint64_t *state, int64_t *told) {
    uint64_t sum = 0;
    for (int32_t step = 0; step < steps; step++)
        for (World *world = worlds; world < worlds + number; world++) {
            uint32_t action = bits(state) >> 29;
            int move = action < 4 ? action : action + 1, to_y, to_x;
            int y = (world->y + move % 3 - 1 + SIZE) % SIZE, x = (world->x + move / 3 - 1 + SIZE) % SIZE;
            uint8_t eaten = at(world, y, x);
            world->energy += GAIN[eaten] - COST, world->age++, world->y = y, world->x = x;
            if (eaten) {
                draw(world, state, y, x, &to_y, &to_x);
                put(world, y, x, EMPTY), put(world, to_y, to_x, eaten), told[eaten]++;
            }
            if (world->energy <= 0) {
                /* After the meal its cell is EMPTY, and a birthplace like any other. */
                draw(world, state, -1, -1, &world->y, &world->x);
                world->energy = BIRTH, world->age = 0, told[EMPTY]++;
            }
            const uint8_t *row = world->grid + world->y * SIDE + world->x;
            for (int i = 0; i < VIEW; i++, row += SIDE)
                for (int j = 0; j < VIEW; j++) sum += row[j];
        }
    return sum;
}
