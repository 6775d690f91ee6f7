"""The optimum under caps as a function of one person's own cost, for many (person, cost) pairs at once.

Moving one person changes the sums of their stratum by one person's terms, so a few rounds lead from the present point
of the path to the one of each pair. An accuracy and a budget have one such point. A price may have several: where it is
not proved once for all that a raised cost leaves one only, the pair is searched.

Values count from the present optimum. A rent is a difference of two values that contain the error, which may be many
orders larger, so differences are not taken between totals (`value_changes`): who is at the cap at both points adds
nothing, and who is inside at both adds, with ``b = λ − ψ`` at the first point and ``d`` the rise of the level,
``u·(d/σ' − b·(σ' − σ)/(σσ'))``, of which no digit is lost.
"""

import math
from functools import cached_property

import numpy as np

from hushbid.allocation.capped import (
    Found,
    affordable,
    beside,
    dearest,
    first_guess,
    free_losses,
    most_accurate,
    normal_caps,
    optimum,
    population,
    zero_cost_people,
)
from hushbid.allocation.central_problem import CentralProblem
from hushbid.allocation.frontier import Points, at, meet, settle
from hushbid.allocation.pool import Moves
from hushbid.allocation.populations import Populations
from hushbid.allocation.price_search import figures, rises_everywhere, search, single_up_to
from hushbid.allocation.reply_rules import Answers
from hushbid.common.arrays import BoolArray, FloatArray, IndexArray
from hushbid.errors import MarketError

_SEARCHED = 256  # so many pairs are searched together
_LOOKED_AT = 64  # of more people most are summed once for boxes around the present point
_SHARES = np.geomspace(1.0 / 64.0, 1.0, 25)  # of the present σ: where paths are bounded
_DIGITS = 2.0**-60
_ROUNDS = 40


class PairsByFrontier:
    """The optimum under caps as a function of one person's cost, everybody else's fixed."""

    def __init__(self, problem: CentralProblem) -> None:
        self._problem = problem = affordable(problem)
        self._rows = np.flatnonzero(problem.costs < math.inf)
        ordered, self._populations = population(problem, self._rows, problem.costs[self._rows])
        self._place = np.full(problem.costs.size, ordered.size)
        """Where each person is in the population; behind the last if they are not."""

        self._place[ordered] = np.arange(ordered.size)
        self._free = set(zero_cost_people(problem).tolist())
        self._known: dict[tuple[int, bool], tuple[float, float]] = {}
        self._reach: dict[tuple[int, bool], float] = {}
        self._losses, self._least = most_accurate(problem, self._rows)
        self._now = self._present()
        self._boxes: list[Populations] | None = None

    def _present(self) -> Found | None:
        """The present optimum if anything is paid; None where there is none."""
        problem = self._problem
        if problem.form.target.kind == "accuracy" and self._without_pay(-1, False)[0] <= problem.form.target.number:
            return None
        try:
            found = optimum(problem)
        except MarketError:  # the accuracy is beyond everybody together
            return None
        return found if found is not None and found.value < math.inf else None

    @property
    def blur(self) -> float:
        """By how much a loss may be off beyond rounding, where prefix sums have lost the digits of a level."""
        if self._now is None:
            return 0.0
        points, most, cap = self._now.points, 0.0, float(self._populations.people.cap.max())
        for g, pool in enumerate(self._populations.people.pools or ()):
            if float(points.sums.mass[g, 0]) > 1.5 * float(pool.mass[0]):
                away = _DIGITS * float(pool.prefixes[1][-1]) / float(points.sums.mass[g, 0])
                most = max(most, min(away * float(pool.mass.max()) / float(points.sigma[0]), cap))
        return most

    def dearest(self, rows: IndexArray) -> FloatArray:
        """Return the costs above which people are not bought from, in the caller's money.

        A person who is alone in their stratum is bought from at any cost, however little.
        """
        problem = self._problem
        there = problem.costs < math.inf
        people = np.bincount(problem.codes[there], minlength=problem.form.sizes.size)
        alone = people[problem.codes[rows]] == there[rows]
        return np.where(alone, math.inf, dearest(problem, rows))

    def answers(self, stratum: int, rows: IndexArray, costs: FloatArray) -> Answers:
        """Return the optimum if people of a stratum had these costs; values count from the present one."""
        if self._problem.form.target.kind == "price":
            return self._for_price(stratum, rows, costs)
        return self._for_accuracy(stratum, rows, costs)

    def moved(self, stratum: int, rows: IndexArray, costs: FloatArray) -> Populations:
        """The populations in which people of a stratum have these costs, in the caller's units."""
        problem, there = self._problem, costs < math.inf
        cost = np.where(there, costs, 0.0) / problem.form.scale
        mass = np.where(there, problem.masses(rows), 0.0)
        cap = normal_caps(problem, rows)
        moves = Moves(self._place[rows], cost, mass, np.where(there, np.where(cap < 1e150, cap, math.inf), 0.0))
        return self._populations.moved(stratum, moves)

    # -- from the present point ----------------------------------------------------------------------------------------

    def ladder(self) -> list[Populations]:
        """The present population summed for ever larger boxes around its point, at last without one."""
        if self._boxes is None:
            self._boxes, people = [], self._populations.people
            if self._now is not None and people.size > _LOOKED_AT:
                points = self._now.points
                levels, sigma = points.levels.high[:, 0], float(points.sigma[0])
                width = 2.0 / max(int(np.count_nonzero(people.costs < levels[people.codes])), 16)
                while width < 0.5:
                    ends = sigma * (1.0 - width), sigma * (1.0 + width)
                    self._boxes.append(self._populations.within(levels * (1.0 - width), levels * (1.0 + width), ends))
                    width *= 4.0
            self._boxes.append(self._populations)
        return self._boxes

    def near(self, populations: Populations) -> tuple[Points, FloatArray]:
        """Return the point of every population that is reached from the present one, and the change of the value.

        For an accuracy and a budget there is no other. Under a budget the value is found elsewhere.
        """
        assert populations.moves is not None
        target, count = self._problem.form.target, populations.moves.person.size
        now = first_guess(self._populations, target) if self._now is None else self._now.points
        start = beside(now, count)
        found, value, unsolved = start.take(np.arange(count)), np.zeros(count), np.arange(count)
        for box in self.ladder():
            settled = np.zeros(count, dtype=bool)
            for begin in range(0, unsolved.size, box.step):
                some = unsolved[begin : begin + box.step]
                moved = box.moved(populations.stratum, populations.moves.take(some))
                points, fine = settle(moved, target, start.take(some), rounds=_ROUNDS)
                done = np.flatnonzero(fine & box.holds(points.levels, points.sigma))
                found.put(some[done], points.take(done))
                value[some[done]] = self._change(moved.take(done), now, points.take(done))
                settled[some[done]] = True
            unsolved = unsolved[~settled[unsolved]]
            if unsolved.size == 0:
                break
        for begin in range(0, unsolved.size, populations.step):
            some = unsolved[begin : begin + populations.step]
            part = populations.take(some)
            points = meet(part, target, start.take(some))
            found.put(some, points)
            value[some] = self._change(part, now, points)
        return found, value

    def _change(self, populations: Populations, now: Points, points: Points) -> FloatArray:
        """Return by how much the value is above the present one, or what it is where there is no present one."""
        target = self._problem.form.target
        if target.kind == "budget" or points.t.size == 0:
            return np.zeros(points.t.size)
        if self._now is None:
            return points.expense + (points.mse if target.kind == "price" else 0.0)
        weight = np.full(points.t.size, target.number) if target.kind == "price" else points.price
        return value_changes(populations, weight, now, points)

    # -- a price -------------------------------------------------------------------------------------------------------

    def _for_price(self, stratum: int, rows: IndexArray, costs: FloatArray) -> Answers:
        problem, populations = self._problem, self.moved(stratum, rows, costs)
        value, loss, mse = np.full(rows.size, math.inf), np.zeros(rows.size), np.full(rows.size, math.inf)
        searched = self._payable(stratum, rows, costs)
        present = self._now.value if self._now is not None else 0.0

        def found(which: IndexArray, points: Points, change: FloatArray) -> None:
            moves = populations.take(which).moves
            assert moves is not None
            value[which], mse[which] = change, points.mse
            loss[which] = moves.losses(points.levels.stratum(stratum), points.sigma)

        raised = searched & (costs >= problem.costs[rows])
        worst, error = self._single if raised.any() else (-math.inf, 0.0)
        near = np.flatnonzero(raised & (worst > present))
        if near.size:
            points, change = self.near(populations.take(near))
            fine = (change <= worst - present) & (change >= -1e-12 * present) & (points.mse <= error)
            only = np.flatnonzero(fine)
            found(near[only], points.take(only), change[only])
            searched[near[only]] = False
        unsolved = np.flatnonzero(searched)
        step = min(_SEARCHED, max(populations.step // 32, 1))
        now = first_guess(self._populations, problem.form.target) if self._now is None else self._now.points
        for begin in range(0, unsolved.size, step):
            some = unsolved[begin : begin + step]
            part = populations.take(some)
            best = search(part, problem.form.target, beside(now, some.size))
            found(some, best.points, self._change(part, now, best.points))
        # zero-cost people who do as well by themselves
        for j in self._perhaps_without_pay(costs):
            error, own = self._without_pay(int(rows[j]), bool(costs[j] == 0.0))
            if error <= value[j] + present:
                value[j], loss[j], mse[j] = error - present, own, error
        return Answers(lambda: value, loss, mse)

    @cached_property
    def _single(self) -> tuple[float, float]:
        """The value and the error up to which a point near the present one is the optimum when a cost is raised."""
        if rises_everywhere(self._populations, 1)[0]:
            return math.inf, math.inf
        if self._now is None:
            return -math.inf, 0.0
        sigma = self._now.points.sigma * _SHARES
        return single_up_to(figures(at(self._populations, sigma, beside(self._now.points, sigma.size))))

    def _payable(self, stratum: int, rows: IndexArray, costs: FloatArray) -> BoolArray:
        """The pairs in which everybody who is needed is there, and at least one asks for something."""
        people, there = self._populations.people, costs < math.inf
        others = people.counts[stratum] - (self._place[rows] < people.size)
        positive = int(np.count_nonzero(people.costs > 0.0))
        own = self._problem.costs[rows]
        paid = positive - ((own > 0.0) & (own < math.inf)) + (there & (costs > 0.0))
        possible: BoolArray = (there | (others > 0)) & (paid > 0)
        return possible

    def _perhaps_without_pay(self, costs: FloatArray) -> list[int]:
        """The pairs in which at least one person asks for nothing."""
        some: list[int] = (np.arange(costs.size) if self._free else np.flatnonzero(costs == 0.0)).tolist()
        return some

    def _without_pay(self, row: int, free: bool) -> tuple[float, float]:
        """The error that zero-cost people reach alone, if ``row`` is or is not one of them, and the loss of ``row``."""
        key = (row if free or row in self._free else -1, free)
        if key not in self._known:
            problem = self._problem
            who = np.array(sorted((self._free - {row}) | ({row} if free else set())), dtype=np.intp)
            losses, error = most_accurate(problem, who) if who.size else (np.zeros(0), math.inf)
            if problem.form.target.kind == "accuracy" and error <= problem.form.target.number:
                losses = free_losses(problem, who)
            own = float(losses[who == row][0]) * math.sqrt(problem.form.unit) if free else 0.0
            self._known[key] = (error, own)
        return self._known[key]

    # -- an accuracy ---------------------------------------------------------------------------------------------------

    def _for_accuracy(self, stratum: int, rows: IndexArray, costs: FloatArray) -> Answers:
        problem, wanted = self._problem, self._problem.form.target.number
        value, loss, mse = np.full(rows.size, math.inf), np.zeros(rows.size), np.full(rows.size, math.inf)
        least = self.least_errors(rows, costs < math.inf)
        paid = least < wanted * (1.0 - 1e-14)
        present = float(self._now.points.expense[0]) if self._now is not None else 0.0
        for j in self._perhaps_without_pay(costs):
            error, own = self._without_pay(int(rows[j]), bool(costs[j] == 0.0))
            if error <= wanted:
                value[j], loss[j], mse[j], paid[j] = -present, own, wanted, False
        # nothing but all that caps allow is accurate enough, whatever it costs
        for j in np.flatnonzero(~paid & (least <= wanted * (1.0 + 1e-15)) & (mse == math.inf)).tolist():
            everybody = np.union1d(self._rows, rows[j : j + 1])
            if costs[j] < math.inf:
                loss[j] = most_accurate(problem, everybody)[0][everybody == rows[j]][0] * math.sqrt(problem.form.unit)
                value[j], mse[j] = loss[j] * costs[j] / problem.form.scale, wanted
        unsolved = np.flatnonzero(paid)
        populations = self.moved(stratum, rows[unsolved], costs[unsolved])
        assert populations.moves is not None
        points, value[unsolved] = self.near(populations)
        loss[unsolved] = populations.moves.losses(points.levels.stratum(stratum), points.sigma)
        mse[unsolved] = wanted
        return Answers(lambda: value, loss, mse)

    def least_errors(self, rows: IndexArray, there: BoolArray) -> FloatArray:
        """The least error that everybody reaches with each person, or without; or an upper bound that is enough."""
        problem, wanted = self._problem, self._problem.form.target.number * (1.0 - 1e-9)
        present = problem.costs[rows] < math.inf
        least = np.full(rows.size, self._least)
        squares = np.minimum(self._losses, 1e100) ** 2 * problem.variances[self._rows]
        given = np.bincount(problem.codes[self._rows], np.minimum(self._losses, 1e100), problem.strata.count)
        loss_of = np.zeros(problem.costs.size)
        loss_of[self._rows] = np.minimum(self._losses, 1e100)
        # without one person all other strata give less in proportion
        codes, total = problem.codes[rows], float(squares.sum())
        kept = 1.0 - loss_of[rows] / given[codes]
        weight = float(given.sum()) * math.sqrt(problem.form.unit)
        own = loss_of[rows] ** 2 * problem.variances[rows]
        with np.errstate(divide="ignore", invalid="ignore"):
            rough = (2.0 + total - own) / (weight * kept) ** 2
        rough = np.where((kept > 0.01) & (weight < 1e90), rough, math.inf)
        unknown = (present != there) & ~(there | (rough < wanted))
        finite = float(self._losses.max()) < math.inf
        if problem.strata.count == 1 and finite and bool((self._losses >= problem.caps[self._rows]).all()):
            # with everybody at the cap so are all others without any one person
            least = np.where(unknown & (kept > 0.01), rough, least)
            unknown &= ~(kept > 0.01)
        for j in np.flatnonzero(unknown).tolist():
            key = (int(rows[j]), bool(there[j]))
            if key not in self._reach:
                others = self._rows[self._rows != rows[j]]
                self._reach[key] = most_accurate(problem, others)[1] if others.size else math.inf
            least[j] = self._reach[key]
        for j in np.flatnonzero(~present & there & ~(self._least < wanted)).tolist():
            key = (int(rows[j]), True)
            if key not in self._reach:
                self._reach[key] = most_accurate(problem, np.append(self._rows, rows[j]))[1]
            least[j] = self._reach[key]
        return np.where(present & there, self._least, least)


def value_changes(populations: Populations, weight: FloatArray, start: Points, end: Points) -> FloatArray:
    """Return ``A·N + C`` at the end less that at the start, one point, where nobody has moved; for each population.

    Where the constraints hold only up to rounding, the change of the Lagrangian function: an error of the point then
    matters in second order only.
    """
    moves, people = populations.moves, populations.people
    losses, squares, expense = _changes(populations, start, end)
    if moves is not None:
        g, sigma = populations.stratum, float(start.sigma[0])
        there, place = moves.person < people.size, np.minimum(moves.person, people.size - 1)
        before = np.where(there, people.losses(start.levels, sigma)[place], 0.0)
        after = np.where(moves.mass > 0.0, moves.losses(end.levels.stratum(g), end.sigma), 0.0)
        mass = np.where(there, people.mass[place], moves.mass)
        losses[g] += after - before
        squares[g] += np.divide((after - before) * (after + before), mass, out=np.zeros(mass.size), where=mass > 0.0)
        paid = np.where(there, people.costs[place] * before, 0.0)
        expense[g] += np.where(after > 0.0, moves.cost * after, 0.0) - paid
    total, error = float(start.weight[0]), float(start.mse[0])
    rise, far = losses.sum(axis=0), np.asarray(end.weight < 0.5 * total)
    after = np.where(far, total, total + rise)
    fall = (squares.sum(axis=0) - error * (2.0 * total + rise) * rise) / (after * after)
    slack = (end.levels.high * (populations.sizes[:, None] * rise - losses)).sum(axis=0)
    near: FloatArray = weight * fall + expense.sum(axis=0) + slack
    # far from the start nothing cancels
    return np.where(far, weight * (end.mse - error) + end.expense - start.expense, near)


def _changes(populations: Populations, start: Points, end: Points) -> FloatArray:
    """Return the changes of losses, squares and expense of every stratum, but for who moved."""
    seen, without, sigma, sigmas = populations.seen, populations.without, float(start.sigma[0]), end.sigma
    rise = (end.levels.high - start.levels.high) + (end.levels.low - start.levels.low)
    found = np.zeros((3, *rise.shape))
    if populations.box is not None:  # who is summed once is inside, or at the cap, at both
        levels = start.levels.take(np.zeros(sigmas.size, dtype=np.intp))
        mass, below, squares, *_ = populations.box.sums(levels, populations.stratum, populations.left)
        a, b, both = rise / sigmas, (sigma - sigmas) / (sigma * sigmas), 1.0 / sigma + 1.0 / sigmas
        found[0] = a * mass + b * below
        found[1] = a * a * mass + a * (both + b) * below + b * both * squares
        found[2] = start.levels.high * found[0] - (a * below + b * squares)
    if seen.size == 0:
        return found
    below, inside, _ = (one[0] for one in seen.states(start.levels, start.sigma, None))
    before = np.clip(seen.mass * below / sigma, 0.0, seen.cap)
    for part in populations.parts(sigmas.size):
        left, s = None if without is None else without[part], sigmas[part, None]
        new, now_inside, capped = seen.states(end.levels.take(part), sigmas[part], left)
        bought = np.where(capped, seen.cap, np.where(now_inside, seen.mass * new / s, 0.0))
        shift = seen.mass * (rise.T[part][:, seen.codes] / s - below * ((s - sigma) / (s * sigma)))
        change = np.where(inside & now_inside, shift, bought - before)
        if left is not None:
            here = np.flatnonzero(left < seen.size)
            change[here, left[here]] = 0.0
        for row, each in enumerate((change, change * (bought + before) / seen.mass, change * seen.costs)):
            found[row][:, part] += seen.by_stratum(each).T
    return found
