from matplotlib.ticker import PercentFormatter

from evidence import figures
from evidence.described import describe


def drawn(*sizes, **options):
    with figures.style():
        return figures.canvas(*sizes, **options)


def test_curves_are_told_by_their_ends_and_what_lies_between():
    figure, axes = drawn()
    axes.plot([0, 10, 20], [1.0, 50.0, 2.5], label="proxy")
    axes.plot([0, 20], [0.25, 1234.5], label="truth")
    axes.axhline(7)
    axes.set(xlabel="steps", ylabel="energy")
    assert describe(figure) == (
        "energy by steps: proxy from 1 to 2.5, highest 50 at 10; truth from 0.25 to 1,234."
    )


def test_what_stands_at_names_is_told_by_name_and_intervals_are_not():
    figure, (left, right) = drawn(1, 2, sharey=True)
    left.plot([0.1, 0.3], [0, 0])  # an interval
    left.plot(0.2, 0, "o")
    left.plot(0.7, 1, "o")
    left.xaxis.set_major_formatter(PercentFormatter(1.0))
    right.barh([0, 1], [-3, 4], label="food")
    left.set_yticks([0, 1], ["proxy", "truth"])
    told = describe(figure)
    assert told == "proxy 20%; truth 70%. proxy food −3; truth food 4."


def test_a_legend_names_what_other_panels_show():
    figure, (left, right) = drawn(1, 2)
    left.plot([0, 1], [0, 1], label="mlp", **figures.line(0))
    right.plot([0, 1], [5, 6], **figures.line(0))
    assert describe(figure) == "mlp from 0 to 1. mlp from 5 to 6."


def test_many_lines_of_one_kind_and_maps_are_told_together():
    figure, (left, right) = drawn(1, 2)
    for end in (3, 4, 5):
        left.plot([0, 1], [end - 3, end], "k-")
    right.pcolormesh([[0.1, 0.2], [0.3, -0.4]])
    assert describe(figure) == "3 lines from 0…2 to 3…5. 4 cells from −0.4 to 0.3."


def test_a_text_of_its_own_comes_first_and_is_on_the_page_escaped():
    figure, axes = drawn()
    axes.plot([0, 1], [0, 1], label="a")
    figure.set_label('a < "b"')
    assert describe(figure) == 'a < "b"'
    assert 'role="img" aria-label="a &lt; &#34;b&#34;"' in figures.svg(figure)


def test_what_has_no_place_is_not_told():
    figure, axes = drawn()
    axes.plot([float("nan"), 1], [1, 2], "o")
    axes.set_xticks([0, 1], ["proxy", "truth"])
    assert describe(figure).endswith("truth 2.")
