"""See test_planner.pxd."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memset

from pyengine._engine.lowlevel.memory cimport allocate_zeros, resize
from pyengine._engine.columns.column_arithmetic cimport (
    COMPUTE, FILL, HEIGHT, INTS, LOAD, LONGS, OPPOSITE, REALS, TO_REAL, VectorStep,
)
from pyengine._engine.columns.column_views cimport (
    BOOLEAN_BITS, CODES, DECIMAL_VALUES, DOUBLE_VALUES, HALF_VALUES, INT64_VALUES, NO_VALUES,
)
from pyengine._engine.java.arithmetic cimport negate
from pyengine._engine.java.comparison cimport compare
from pyengine._engine.columns.key_range cimport Comparison, highest_key, key_range, lowest_key, set_bounds, typed_value
from pyengine._engine.selector.like cimport Pattern
from pyengine._engine.columns.text_sets cimport make_set
from pyengine._engine.columns.plan cimport (
    BY_ROW, COMPUTED_PAIR, COMPUTED_WITHIN, FIXED, FLAGS, LOOKUP, PAIR, PRESENCE, SIGNATURE_SIZE, TEXT_IS, TEXT_LIKE,
    TEXT_STARTS, WITHIN, Plan, Test, as_property,
)
from pyengine._engine.selector.interpreter cimport node_truth
from pyengine._engine.selector.program cimport (
    BOOLEAN_CAST, CONSTANT, EQUAL_TO, GREATER_OR_EQUAL, LIKE_MATCH, MEMBER, MINUS, NULL_TEST, QUOTIENT, SLOT,
    SUM, Node, arity,
)
from pyengine._engine.java.value cimport (
    DECIMAL, DOUBLE, EXACT_TYPES, FLOAT, INT, LONG, NULL_VALUE, RAISED, STRING, TRUE, UNKNOWN, UTF8, Scratch, Value,
    free_scratch,
)


cdef bint in_a_set(const Value* texts, int count) noexcept nogil:
    """Whether a table is quicker than to compare with one constant after the other, which longer ones make slow."""
    cdef int i, total = 0
    for i in range(count):
        total += 1 if texts[i].length <= 8 else 6
    return count > 1 and total > 12


cdef class ColumnTests:

    def __cinit__(self, Plan plan not None):
        cdef int node, i, slot
        cdef Node* each
        self.plan = plan
        self.program = plan.program
        self.nodes = self.program.nodes
        self.signature = <const uint8_t*> <const char*> plan.signature
        self.values = <Value*> allocate_zeros(len(self.program.names) + 1, sizeof(Value))
        self.only = <int32_t*> allocate_zeros(self.program.size + 1, sizeof(int32_t))
        self.raising = <uint8_t*> allocate_zeros(self.program.size + 1, 1)
        for slot in range(<int> len(self.program.names)):
            if not self.storage_of(slot):
                self.values[slot] = self.program.defaults[slot]
        for node in range(self.program.size):
            each = &self.nodes[node]
            self.only[node] = NO_SLOT
            if each.operation == SLOT:
                if self.storage_of(each.slot):
                    self.only[node] = each.slot
            elif each.operation != CONSTANT:
                for i in range(arity(&self.nodes[node])):
                    slot = self.only[self.child(node, i)]
                    if slot != NO_SLOT and self.only[node] == NO_SLOT:
                        self.only[node] = slot
                    elif slot != NO_SLOT and slot != self.only[node]:
                        self.only[node] = MANY_SLOTS
            self.raising[node] = self.raising_of(node)

    def __dealloc__(self):
        free(self.values)
        free(self.only)
        free(self.raising)

    cdef int child(self, int node, int which) noexcept:
        return self.program.children[self.nodes[node].first + which]

    cdef int storage_of(self, int slot) noexcept:
        """Storage of the slot's column plus 1; 0 where no column is bound or the column has no values."""
        cdef int coded = self.signature[SIGNATURE_SIZE * slot]
        return 0 if coded == NO_VALUES + 1 else coded

    cdef uint8_t raising_of(self, int node) noexcept:
        cdef int operation = self.nodes[node].operation
        cdef int left, right, i
        cdef uint8_t below = 0
        if self.nodes[node].needs_gil or self.program.every_text:
            return self.nodes[node].can_raise
        if SUM <= operation <= MINUS:
            return 0 if self.number_type(node) else self.nodes[node].can_raise
        if self.is_comparison(node):
            left = self.number_type(self.child(node, 0))
            right = self.number_type(self.child(node, 1))
            if left and right and not (left == DOUBLE and right == FLOAT):
                return 0
            return self.nodes[node].can_raise
        for i in range(arity(&self.nodes[node])):
            below = max(below, self.raising[self.child(node, i)])
        return below

    # Asking the row rules

    cdef int ask(self, int node) except -1:
        """Truth of a node on the row that ``values`` is."""
        cdef Scratch scratch
        cdef int truth
        memset(&scratch, 0, sizeof(Scratch))
        truth = node_truth(self.program, node, self.values, NULL, &scratch)
        free_scratch(&scratch)
        return truth

    cdef int ask_about(self, int node, int slot, Value value) except -1:
        """Truth of a node when the slot holds this value."""
        cdef Value before = self.values[slot]
        cdef Scratch scratch
        cdef int truth = RAISED
        memset(&scratch, 0, sizeof(Scratch))
        if as_property(self.program, &value, &scratch):
            self.values[slot] = value
            truth = node_truth(self.program, node, self.values, NULL, &scratch)
        self.values[slot] = before
        free_scratch(&scratch)
        return truth

    cdef int ask_null(self, int node, int slot) except -1:
        return self.ask_about(node, slot, self.program.defaults[slot])

    cdef int relate(self, int node, const Value* left, const Value* right) except -1:
        cdef Scratch scratch
        memset(&scratch, 0, sizeof(Scratch))
        cdef int truth = compare(self.nodes[node].operation - EQUAL_TO, left, right, self.nodes[node].rules, &scratch)
        free_scratch(&scratch)
        return truth

    cdef Test* add_test(self, int kind, int node, int slot) except NULL:
        cdef Plan plan = self.plan
        plan.tests = <Test*> resize(plan.tests, (plan.test_count + 1) * sizeof(Test))
        cdef Test* test = &plan.tests[plan.test_count]
        plan.test_count += 1
        memset(test, 0, sizeof(Test))
        test.kind = kind
        test.node = node
        test.slot = slot
        test.other = NO_SLOT
        return test

    # Numbers

    cdef int number_type(self, int node) noexcept:
        """Java type of what is a number, or null, on every row; 0 where it may be more or where a step raises."""
        cdef int operation = self.nodes[node].operation
        cdef int slot = self.nodes[node].slot
        cdef int left, right
        if operation == CONSTANT:
            left = self.nodes[node].constant.type
            return left if left == INT or left == LONG or left == DOUBLE else 0
        if operation == SLOT:
            if self.program.defaults[slot].type != NULL_VALUE or not self.storage_of(slot):
                return 0
            return self.signature[SIGNATURE_SIZE * slot + 1] if self.storage_of(slot) - 1 <= HALF_VALUES else 0
        if not SUM <= operation <= MINUS:
            return 0
        left = self.number_type(self.child(node, 0))
        if operation == MINUS:
            return left if left == INT or left == LONG or left == DOUBLE else 0
        right = self.number_type(self.child(node, 1))
        if not left or not right:
            return 0
        if operation >= QUOTIENT or left >= FLOAT or right >= FLOAT:
            return DOUBLE
        return LONG if left == LONG or right == LONG else INT

    cdef int add_vector(self, int operation, int kind) except -1:
        cdef Plan plan = self.plan
        cdef VectorStep* longer = <VectorStep*> resize(
            plan.vector_steps, (plan.vector_step_count + 1) * sizeof(VectorStep)
        )
        plan.vector_steps = longer
        memset(&longer[plan.vector_step_count], 0, sizeof(VectorStep))
        longer[plan.vector_step_count].operation = <uint8_t> operation
        longer[plan.vector_step_count].kind = <uint8_t> kind
        plan.vector_step_count += 1
        return 0

    cdef int height_of(self, int node) noexcept:
        """Values on the stack while a number is computed."""
        cdef int operation = self.nodes[node].operation
        if operation == MINUS:
            return self.height_of(self.child(node, 0))
        if SUM <= operation < MINUS:
            return max(self.height_of(self.child(node, 0)), 1 + self.height_of(self.child(node, 1)))
        return 1

    cdef int add_vectors(self, int node, bint real) except -1:
        """Steps that compute a number of known type, as doubles if ``real``."""
        cdef int operation = self.nodes[node].operation
        cdef int java_type = self.number_type(node)
        cdef int kind = REALS if java_type >= FLOAT else LONGS if java_type == LONG else INTS
        cdef VectorStep* step
        if operation == SLOT or operation == CONSTANT:
            self.add_vector(LOAD if operation == SLOT else FILL, kind)
            step = &self.plan.vector_steps[self.plan.vector_step_count - 1]
            step.slot = self.nodes[node].slot
            step.integer = self.nodes[node].constant.payload.integer
            step.real = self.nodes[node].constant.payload.real
        elif operation == MINUS:
            self.add_vectors(self.child(node, 0), False)
            self.add_vector(OPPOSITE, kind)
        else:
            self.add_vectors(self.child(node, 0), kind == REALS)
            self.add_vectors(self.child(node, 1), kind == REALS)
            self.add_vector(COMPUTE, kind)
            self.plan.vector_steps[self.plan.vector_step_count - 1].calculation = <uint8_t> (operation - SUM)
        if real and kind != REALS:
            self.add_vector(TO_REAL, REALS)
        return 0

    cdef bint add_computed(self, int node) except -1:
        """A comparison of computed numbers; False if it is none, or better asked otherwise."""
        cdef int left = self.child(node, 0), right = self.child(node, 1), i
        cdef int left_type, right_type, java_type
        cdef bint computed, bounded
        cdef int64_t low, high
        cdef int first = self.plan.vector_step_count
        cdef Value null, less, more
        cdef Test* test
        if not self.is_comparison(node) or self.program.every_text:
            return False
        computed = SUM <= self.nodes[left].operation <= MINUS or SUM <= self.nodes[right].operation <= MINUS
        left_type, right_type = self.number_type(left), self.number_type(right)
        if not computed or not left_type or not right_type or left_type == DOUBLE and right_type == FLOAT:
            return False
        memset(&null, 0, sizeof(Value))
        bounded = self.nodes[left].operation == CONSTANT or self.nodes[right].operation == CONSTANT
        if bounded:
            if self.nodes[left].operation == CONSTANT:
                left, right = right, left
            java_type = self.number_type(left)
            less = self.nodes[right].constant
            if self.height_of(left) > HEIGHT or not self.computed_range(
                node, java_type, &less, left == self.child(node, 0), &low, &high
            ):
                return False
            self.add_vectors(left, False)
            test = self.add_test(COMPUTED_WITHIN, node, NO_SLOT)
            test.real = java_type == DOUBLE
            if left == self.child(node, 0):
                i = self.relate(node, &null, &less)
            else:
                i = self.relate(node, &less, &null)
            self.bound(test, DOUBLE_VALUES if test.real else INT64_VALUES, java_type, low, high, <uint8_t> i)
        else:
            # A comparison of a float with an int or long rounds the integer to a float; of others, not.
            if (left_type == FLOAT) != (right_type == FLOAT) and left_type != DOUBLE and right_type != DOUBLE:
                return False
            # Bytes and shorts are not widened in every direction.
            if left_type < INT or right_type < INT:
                return False
            if self.height_of(left) > HEIGHT or 1 + self.height_of(right) > HEIGHT:
                return False
            java_type = DOUBLE if left_type >= FLOAT or right_type >= FLOAT else LONG
            self.add_vectors(left, java_type == DOUBLE)
            self.add_vectors(right, java_type == DOUBLE)
            test = self.add_test(COMPUTED_PAIR, node, NO_SLOT)
            test.real = java_type == DOUBLE
            less = typed_value(DOUBLE_VALUES if test.real else INT64_VALUES, java_type, 0)
            more = typed_value(DOUBLE_VALUES if test.real else INT64_VALUES, java_type, 1)
            test.order = <uint8_t> (
                self.relate(node, &less, &more) | self.relate(node, &less, &less) << 1
                | self.relate(node, &more, &less) << 2
            )
            test.truths[1] = <uint8_t> self.relate(node, &null, &less)
            test.truths[2] = <uint8_t> self.relate(node, &less, &null)
            test.truths[3] = <uint8_t> self.relate(node, &null, &null)
        test.first_step = first
        test.vector_count = self.plan.vector_step_count - first
        return True

    cdef bint computed_range(
        self, int node, int java_type, const Value* constant, bint left, int64_t* low, int64_t* high
    ) except -1:
        cdef int storage = DOUBLE_VALUES if java_type == DOUBLE else INT64_VALUES
        return self.interval(node, storage, java_type, constant[0], left, low, high)

    # Tests

    cdef int add_known(self, int kind, int node, int slot, int count, const uint8_t* truths) except -1:
        cdef Test* test = self.add_test(kind, node, slot)
        cdef int i
        for i in range(count):
            test.truths[i] = truths[i]
            if truths[i] == RAISED:
                test.can_raise = 1
        return 0

    cdef int add_by_row(self, int node) except -1:
        cdef Plan plan = self.plan
        cdef Test* test = self.add_test(BY_ROW, node, NO_SLOT)
        test.can_raise = self.raising[node] > 1 or self.nodes[node].needs_gil
        test.first_slot = plan.slot_list_count
        self.list_slots(node, plan.slot_list_count)
        plan.tests[plan.test_count - 1].slot_count = plan.slot_list_count - test.first_slot
        return 0

    cdef int list_slots(self, int node, int first) except -1:
        """Append the column slots below a node to slot_lists, each once from ``first`` on."""
        cdef Plan plan = self.plan
        cdef int i, slot = self.only[node]
        if slot == NO_SLOT:
            return 0
        if slot == MANY_SLOTS:
            for i in range(arity(&self.nodes[node])):
                self.list_slots(self.child(node, i), first)
            return 0
        for i in range(first, plan.slot_list_count):
            if plan.slot_lists[i] == slot:
                return 0
        plan.slot_lists = <int32_t*> resize(plan.slot_lists, (plan.slot_list_count + 1) * sizeof(int32_t))
        plan.slot_lists[plan.slot_list_count] = slot
        plan.slot_list_count += 1
        return 0

    cdef bint is_comparison(self, int node) noexcept:
        return EQUAL_TO <= self.nodes[node].operation <= GREATER_OR_EQUAL

    cdef bint constant_side(self, int node, Value* constant) except -1:
        """Whether a node is a constant number, text or boolean, and which."""
        cdef Scratch scratch
        cdef int done
        if self.nodes[node].operation == CONSTANT:
            constant[0] = self.nodes[node].constant
            return constant.type != NULL_VALUE
        if self.nodes[node].operation == MINUS and self.nodes[self.child(node, 0)].operation == CONSTANT:
            memset(&scratch, 0, sizeof(Scratch))
            done = negate(&self.nodes[self.child(node, 0)].constant, constant, &scratch)
            if scratch.blocks != NULL:
                done = RAISED
            free_scratch(&scratch)
            return done == TRUE and constant.type != NULL_VALUE
        return False

    cdef int add_test_of(self, int node) except -1:
        """The best test there is for a node that is not AND, OR or NOT."""
        cdef int slot = self.only[node]
        cdef int storage = self.storage_of(slot) - 1 if slot >= 0 else -1
        cdef int operation = self.nodes[node].operation
        cdef uint8_t[4] truths
        cdef Value value
        memset(&value, 0, sizeof(Value))
        if slot == NO_SLOT:
            truths[0] = <uint8_t> self.ask(node)
            return self.add_known(FIXED, node, slot, 1, truths)
        if self.add_computed(node):
            return 0
        if slot == MANY_SLOTS:
            return self.add_pair(node)
        if storage == CODES:
            self.add_test(LOOKUP, node, slot).can_raise = self.raising[node] > 1 or self.nodes[node].needs_gil
            return 0
        truths[1] = <uint8_t> self.ask_null(node, slot)
        value.type = self.signature[SIGNATURE_SIZE * slot + 1]
        if storage == BOOLEAN_BITS:
            truths[2] = truths[1]
            truths[0] = <uint8_t> self.ask_about(node, slot, value)
            value.payload.integer = 1
            truths[1] = <uint8_t> self.ask_about(node, slot, value)
            return self.add_known(FLAGS, node, slot, 3, truths)
        if value.type == STRING:
            value.encoding = UTF8
            value.payload.text = <const char*> b""
        if value.type == DECIMAL:
            value.encoding = 4
            value.payload.text = <const char*> b"\0\0\0\0"
        if operation == NULL_TEST and self.nodes[self.child(node, 0)].operation == SLOT:
            truths[0] = <uint8_t> self.ask_about(node, slot, value)
            return self.add_known(PRESENCE, node, slot, 2, truths)
        if self.program.every_text and value.type != STRING:
            return self.add_by_row(node)
        if value.type == STRING:
            return self.add_text_test(node, slot, value, truths[1])
        if operation in (BOOLEAN_CAST, LIKE_MATCH, MEMBER) and self.nodes[self.child(node, 0)].operation == SLOT:
            truths[0] = <uint8_t> self.ask_about(node, slot, value)
            return self.add_known(PRESENCE, node, slot, 2, truths)
        if self.is_comparison(node) and storage != DECIMAL_VALUES and self.add_within(node, slot, truths[1]):
            return 0
        return self.add_by_row(node)

    cdef int add_text_test(self, int node, int slot, Value sample, uint8_t when_null) except -1:
        cdef Node* each = &self.nodes[node]
        cdef int operation = each.operation
        cdef uint8_t[2] truths
        cdef Value constant
        cdef Test* test
        cdef const Pattern* pattern
        truths[1] = when_null
        if operation == BOOLEAN_CAST and self.nodes[self.child(node, 0)].operation == SLOT:
            truths[0] = <uint8_t> self.ask_about(node, slot, sample)
            return self.add_known(PRESENCE, node, slot, 2, truths)
        if self.is_comparison(node) and (
            self.nodes[self.child(node, 0)].operation == SLOT and self.constant_side(self.child(node, 1), &constant)
            or self.nodes[self.child(node, 1)].operation == SLOT and self.constant_side(self.child(node, 0), &constant)
        ):
            if operation == EQUAL_TO and constant.type == STRING and self.ask_about(node, slot, constant) == TRUE:
                test = self.add_test(TEXT_IS, node, slot)
                test.truths[1] = when_null
                test.can_raise = when_null == RAISED
                test.text = constant
                test.text_count = 1
                return 0
            if constant.type != STRING and each.rules == EXACT_TYPES:
                truths[0] = <uint8_t> self.ask_about(node, slot, sample)
                return self.add_known(PRESENCE, node, slot, 2, truths)
        elif operation == MEMBER:
            test = self.add_test(TEXT_IS, node, slot)
            test.truths[1] = when_null
            test.can_raise = when_null == RAISED
            test.negated = each.negated
            test.text_count = each.count
            test.texts = each.texts
            if in_a_set(each.texts, each.count):
                test.set = make_set(each.texts, each.count)
            return 0
        elif operation == LIKE_MATCH and self.nodes[self.child(node, 0)].operation == SLOT:
            pattern = each.like
            if pattern.plain and pattern.count == 1 and not pattern.open_start and pattern.segments[0].count > 0:
                test = self.add_test(TEXT_STARTS if pattern.open_end else TEXT_IS, node, slot)
                test.truths[1] = when_null
                test.can_raise = when_null == RAISED
                test.text_count = 1
                test.text.type = STRING
                test.text.encoding = UTF8
                test.text.length = pattern.segments[0].count
                test.text.payload.text = pattern.segments[0].bytes
                return 0
            test = self.add_test(TEXT_LIKE, node, slot)
            test.truths[1] = when_null
            test.can_raise = when_null == RAISED
            return 0
        return self.add_by_row(node)

    # Numbers: the interval of a comparison, found by asking it

    cdef Value value_of_key(self, int slot, int64_t key) noexcept:
        return typed_value(self.storage_of(slot) - 1, self.signature[SIGNATURE_SIZE * slot + 1], key)

    cdef bint range_of(self, int node, int64_t* low, int64_t* high) except -1:
        """The keys for which a comparison of a number column with a constant holds; False if they are not an
        interval."""
        cdef int slot = self.only[node]
        cdef int storage
        cdef bint left = self.nodes[self.child(node, 0)].operation == SLOT
        cdef Value constant
        if slot < 0 or not self.is_comparison(node):
            return False
        if self.nodes[self.child(node, 0 if left else 1)].operation != SLOT:
            return False
        if not self.constant_side(self.child(node, 1 if left else 0), &constant):
            return False
        storage = self.storage_of(slot) - 1
        return self.interval(node, storage, self.signature[SIGNATURE_SIZE * slot + 1], constant, left, low, high)

    cdef bint interval(
        self, int node, int storage, int java_type, Value constant, bint left, int64_t* low, int64_t* high
    ) noexcept:
        """The keys of a number type for which a comparison node holds; False if they are not an interval."""
        cdef Comparison comparison
        comparison.relation = self.nodes[node].operation - EQUAL_TO
        comparison.rules = self.nodes[node].rules
        comparison.storage = storage
        comparison.java_type = java_type
        comparison.left = left
        comparison.constant = constant
        return key_range(&comparison, low, high)

    cdef bint add_within(self, int node, int slot, uint8_t when_null) except -1:
        """A WITHIN test, or PRESENCE where the types alone decide (or raise); False if the comparison is neither."""
        cdef int64_t low, high
        cdef int storage = self.storage_of(slot) - 1
        cdef uint8_t[2] truths
        if self.range_of(node, &low, &high):
            self.bound_slot(self.add_test(WITHIN, node, slot), slot, low, high, when_null)
            return True
        truths[0] = <uint8_t> self.ask_about(node, slot, self.value_of_key(slot, lowest_key(storage)))
        truths[1] = when_null
        if truths[0] != RAISED:
            return False
        for key in (0, highest_key(storage)):
            if self.ask_about(node, slot, self.value_of_key(slot, key)) != RAISED:
                return False
        self.add_known(PRESENCE, node, slot, 2, truths)
        return True

    cdef int bound_slot(self, Test* test, int slot, int64_t low, int64_t high, uint8_t when_null) except -1:
        cdef int java_type = self.signature[SIGNATURE_SIZE * slot + 1]
        return self.bound(test, self.storage_of(slot) - 1, java_type, low, high, when_null)

    cdef int bound(
        self, Test* test, int storage, int java_type, int64_t low, int64_t high, uint8_t when_null
    ) except -1:
        test.truths[1] = when_null
        test.can_raise = when_null == RAISED
        set_bounds(&test.bounds, storage, java_type, low, high)
        return 0

    cdef int add_pair(self, int node) except -1:
        """Two columns of one number type compared; anything else with two columns goes by row."""
        cdef int left, right, storage
        cdef Value low, high, null
        cdef uint8_t truth
        cdef int i
        cdef Test* test
        if not self.is_comparison(node) or self.program.every_text:
            return self.add_by_row(node)
        if self.nodes[self.child(node, 0)].operation != SLOT or self.nodes[self.child(node, 1)].operation != SLOT:
            return self.add_by_row(node)
        left, right = self.only[self.child(node, 0)], self.only[self.child(node, 1)]
        storage = self.storage_of(left) - 1
        if storage != self.storage_of(right) - 1 or storage > DOUBLE_VALUES:
            return self.add_by_row(node)
        if self.signature[SIGNATURE_SIZE * left + 1] != self.signature[SIGNATURE_SIZE * right + 1]:
            return self.add_by_row(node)
        if self.program.defaults[left].type != NULL_VALUE or self.program.defaults[right].type != NULL_VALUE:
            return self.add_by_row(node)
        low, high = self.value_of_key(left, 0), self.value_of_key(left, 1)
        memset(&null, 0, sizeof(Value))
        test = self.add_test(PAIR, node, left)
        test.other = right
        for i in range(6):
            self.values[left] = null if i == 3 or i == 5 else high if i == 2 else low
            self.values[right] = null if i == 4 or i == 5 else high if i == 0 else low
            truth = <uint8_t> self.ask(node)
            if i < 3:
                if truth > TRUE:
                    self.plan.test_count -= 1
                    return self.add_by_row(node)
                test.order |= <uint8_t> (truth << i)
            else:
                test.truths[i - 2] = truth
                test.can_raise |= truth == RAISED
        return 0

    cdef bint is_bounded(self, int node, int64_t* low, int64_t* high) except -1:
        """Whether a node is an interval test of a number column that is unknown on a null."""
        cdef int slot = self.only[node]
        cdef int storage = self.storage_of(slot) - 1 if slot >= 0 else -1
        if storage < 0 or storage > HALF_VALUES or self.program.every_text or not self.is_comparison(node):
            return False
        return self.range_of(node, low, high) and self.ask_null(node, slot) == UNKNOWN
