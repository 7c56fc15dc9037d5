"""See planner.pxd."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset

from pyengine._engine.lowlevel.memory cimport resize
from pyengine._engine.columns.column_views cimport BOOLEAN_BITS, CODES
from pyengine._engine.columns.test_planner cimport MANY_SLOTS, NO_SLOT, ColumnTests
from pyengine._engine.java.comparison cimport compare
from pyengine._engine.columns.plan cimport (
    BEGIN_BOTH, BEGIN_EITHER, END_BOTH, END_EITHER, FLAGS, IS_UNKNOWN, NEXT_BOTH, NEXT_EITHER, NO_REGISTER, RUN_TEST,
    SAME_TRUTH, WITHIN, Plan, Step,
)
from pyengine._engine.selector.program cimport BOTH, CONSTANT, EITHER, EQUAL_TO, NEGATION, NULL_TEST, SLOT, Program
from pyengine._engine.java.value cimport (
    BOOLEAN, FALSE, IS_EQUAL, NULL_VALUE, TRUE, UNKNOWN, Scratch, Value, free_scratch,
)


cdef enum Wanted:
    WANT_ON = 1
    WANT_OFF = 2


cdef struct Answer:       # registers of a laid out node
    int32_t on
    int32_t off
    int32_t raised


cdef class Layout(ColumnTests):
    """One laying out: the steps over the tests."""

    # Registers and steps

    cdef int register(self) noexcept:
        self.plan.register_count += 1
        return self.plan.register_count - 1

    cdef Step* add_step(self, int kind, int live) except NULL:
        cdef Plan plan = self.plan
        plan.steps = <Step*> resize(plan.steps, (plan.step_count + 1) * sizeof(Step))
        cdef Step* step = &plan.steps[plan.step_count]
        plan.step_count += 1
        memset(step, 0, sizeof(Step))
        step.kind = kind
        step.live = live
        step.on = step.off = step.raised = NO_REGISTER
        step.child_live = step.child_on = step.child_off = step.child_raised = NO_REGISTER
        step.other_on = step.other_off = step.other_raised = NO_REGISTER
        return step

    cdef int take_registers(self, Step* step, int wanted, bint can_raise, Answer* answer) except -1:
        answer.on = step.on = self.register() if wanted & WANT_ON else NO_REGISTER
        answer.off = step.off = self.register() if wanted & WANT_OFF else NO_REGISTER
        answer.raised = step.raised = self.register() if can_raise else NO_REGISTER
        return 0

    cdef int run_test(self, int live, int wanted, Answer* answer) except -1:
        """A step that runs the test added last."""
        cdef int test = self.plan.test_count - 1
        cdef Step* step = self.add_step(RUN_TEST, live)
        step.test = test
        return self.take_registers(step, wanted, self.plan.tests[test].can_raise, answer)

    # Boolean nodes

    cdef bint collapses(self, int node, bint matching) noexcept:
        """Whether a boolean node is best asked as a whole: it reads one dictionary or boolean column, or none. If it
        can raise, AND and OR below matches() stop earlier than a node asked alone."""
        cdef int slot = self.only[node]
        if matching and self.raising[node] > 1:
            return False
        if slot == NO_SLOT:
            return True
        return slot >= 0 and self.storage_of(slot) - 1 in (CODES, BOOLEAN_BITS)

    cdef int lay(self, int node, int live, int wanted, bint matching, Answer* answer) except -1:
        """Steps that answer a boolean node for the live rows."""
        cdef int operation = self.nodes[node].operation
        cdef Answer inner
        cdef Step* step
        cdef int swapped
        if operation == NEGATION and not self.collapses(node, matching):
            swapped = (wanted & WANT_ON) << 1 | (wanted & WANT_OFF) >> 1
            self.lay(self.child(node, 0), live, swapped, False, &inner)
            answer.on, answer.off, answer.raised = inner.off, inner.on, inner.raised
            return 0
        if operation == BOTH or operation == EITHER:
            if not self.collapses(node, matching):
                return self.lay_junction(node, live, wanted, matching, answer)
        elif operation == NULL_TEST and self.nodes[self.child(node, 0)].boolean and self.only[node] == MANY_SLOTS:
            self.lay(self.child(node, 0), live, WANT_ON | WANT_OFF, False, &inner)
            step = self.add_step(IS_UNKNOWN, live)
            step.child_on, step.child_off, step.child_raised = inner.on, inner.off, inner.raised
            self.take_registers(step, wanted, False, answer)
            answer.raised = inner.raised
            return 0
        elif operation == EQUAL_TO and self.only[node] == MANY_SLOTS and self.is_truth(self.child(node, 0)) \
                and self.is_truth(self.child(node, 1)):
            return self.lay_same(node, live, wanted, answer)
        self.add_test_of(node)
        return self.run_test(live, wanted, answer)

    cdef bint is_truth(self, int node) noexcept:
        """Whether a child of = answers with registers: a boolean expression or a boolean column."""
        if self.nodes[node].operation == SLOT:
            return self.storage_of(self.nodes[node].slot) - 1 == BOOLEAN_BITS and not self.program.every_text
        return self.nodes[node].boolean and self.nodes[node].operation != CONSTANT

    cdef int lay_operand(self, int node, int live, Answer* answer) except -1:
        cdef uint8_t[3] truths
        cdef Value* default = &self.program.defaults[max(self.nodes[node].slot, 0)]
        if self.nodes[node].operation != SLOT:
            return self.lay(node, live, WANT_ON | WANT_OFF, False, answer)
        truths[0], truths[1] = FALSE, TRUE
        truths[2] = <uint8_t> default.payload.integer if default.type == BOOLEAN else UNKNOWN
        self.add_known(FLAGS, node, self.nodes[node].slot, 3, truths)
        return self.run_test(live, WANT_ON | WANT_OFF, answer)

    cdef int lay_same(self, int node, int live, int wanted, Answer* answer) except -1:
        """= of two truths, by the rule of = for the nine pairs of them."""
        cdef Answer left, right
        cdef Value[2] values
        cdef int i, j, side
        cdef Step* step
        cdef Scratch scratch
        cdef bint can_raise
        self.lay_operand(self.child(node, 0), live, &left)
        self.lay_operand(self.child(node, 1), live, &right)
        step = self.add_step(SAME_TRUTH, live)
        step.child_on, step.child_off, step.child_raised = left.on, left.off, left.raised
        step.other_on, step.other_off, step.other_raised = right.on, right.off, right.raised
        can_raise = left.raised != NO_REGISTER or right.raised != NO_REGISTER
        memset(&scratch, 0, sizeof(Scratch))
        for i in range(3):
            for j in range(3):
                memset(values, 0, sizeof(values))
                for side in range(2):
                    values[side].type = NULL_VALUE if (j if side else i) == UNKNOWN else BOOLEAN
                    values[side].payload.integer = j if side else i
                step.outcomes[3 * i + j] = <uint8_t> compare(
                    IS_EQUAL, &values[0], &values[1], self.nodes[node].rules, &scratch
                )
        free_scratch(&scratch)
        return self.take_registers(step, wanted, can_raise, answer)

    cdef int lay_junction(self, int node, int live, int wanted, bint matching, Answer* answer) except -1:
        """AND or OR."""
        cdef bint both = self.nodes[node].operation == BOTH
        cdef bint can_raise = self.raising[node] > 1 or self.nodes[node].needs_gil
        cdef bint definite = can_raise and not matching
        cdef int count = self.nodes[node].count, i = 0, inner_live, first_next
        cdef int inner_wanted = wanted
        cdef int64_t low, high, next_low, next_high
        cdef Answer inner
        cdef Step* step
        cdef int merged
        if definite:
            inner_wanted |= WANT_OFF if both else WANT_ON
        step = self.add_step(BEGIN_BOTH if both else BEGIN_EITHER, live)
        step.definite = definite
        self.take_registers(step, inner_wanted, can_raise, answer)
        inner_live = step.child_live = self.register()
        first_next = self.plan.step_count
        while i < count:
            merged = 1
            if both and self.is_bounded(self.child(node, i), &low, &high):
                # Neighbouring bounds on one column (BETWEEN) are one interval: on a null all of them are unknown.
                while i + merged < count and self.only[self.child(node, i + merged)] == self.only[self.child(node, i)] \
                        and self.is_bounded(self.child(node, i + merged), &next_low, &next_high):
                    low, high = max(low, next_low), min(high, next_high)
                    merged += 1
            if merged > 1:
                if low > high:
                    low, high = 1, 0
                self.bound_slot(
                    self.add_test(WITHIN, self.child(node, i), self.only[self.child(node, i)]),
                    self.only[self.child(node, i)], low, high, UNKNOWN,
                )
                self.run_test(inner_live, inner_wanted, &inner)
            else:
                self.lay(self.child(node, i), inner_live, inner_wanted, matching, &inner)
            i += merged
            step = self.add_step(NEXT_BOTH if both else NEXT_EITHER, inner_live)
            step.definite = definite
            step.on, step.off, step.raised = answer.on, answer.off, answer.raised
            step.child_live = inner_live
            step.child_on, step.child_off, step.child_raised = inner.on, inner.off, inner.raised
        step = self.add_step(END_BOTH if both else END_EITHER, live)
        step.on, step.off, step.raised = answer.on, answer.off, answer.raised
        step.child_live = inner_live
        step.definite = definite
        for i in range(first_next, self.plan.step_count):
            step = &self.plan.steps[i]
            if (step.kind == NEXT_BOTH or step.kind == NEXT_EITHER) and step.child_live == inner_live:
                step.jump = self.plan.step_count - 1
        return 0


cdef Plan lay_out(Program program, bytes signature, bint matching):
    cdef Plan plan = Plan.__new__(Plan)
    cdef Answer answer
    plan.program = program
    plan.signature = signature
    plan.matching = matching
    plan.register_count = 1
    cdef Layout layout = Layout(plan)
    # RocketMQ has no matches() of its own: unknown does not end an AND there.
    layout.lay(
        program.root, 0, WANT_ON if matching else WANT_ON | WANT_OFF, matching and not program.every_text, &answer
    )
    plan.on, plan.off, plan.raised = answer.on, answer.off, answer.raised
    return plan
