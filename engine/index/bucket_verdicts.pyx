# cython: freethreading_compatible=True
"""What each bucket says of a requirement; see bucket_verdicts.pxd."""

from cython cimport final
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint32_t, uint64_t
from libc.string cimport memcmp, memset

from pyengine._engine.index.constants cimport Point
from pyengine._engine.index.message_view cimport WORD
from pyengine._engine.index.partitions cimport beginning, covered, interval_truths, key_of
from pyengine._engine.index.requirement_list cimport Requirement, RequirementList
from pyengine._engine.index.requirements cimport (
    MAY_BE_FALSE,
    MAY_BE_TRUE,
    MAY_BE_UNKNOWN,
    MAY_RAISE,
    OPEN,
    REFUSED,
    verdict_of,
)
from pyengine._engine.index.segment cimport (
    FIRST_TEXT,
    NULL_BUCKET,
    ODD_BUCKET,
    STRANGE_BUCKET,
    Segment,
    Table,
    first_text_stretch,
    rank,
)
from pyengine._engine.java.value cimport (
    DOUBLE,
    INT,
    LATIN1,
    NULL_VALUE,
    STRING,
    Scratch,
    Value,
    free_scratch,
)
from pyengine._engine.selector.program cimport NUMBER, PREFIX, TEXT, TEXTS, Leaf, leaf_truth


@final
cdef class BucketVerdicts:
    """Internal to the building of a segment; see bucket_verdicts.pxd."""

    cdef int mark(self, const Requirement* requirement, int bucket, int count, int possible) except -1:
        """The same verdict in ``count`` buckets."""
        cdef Segment segment = self.segment
        cdef Table* table = &segment.tables[requirement.table]
        cdef int verdict = verdict_of(requirement.leaf, requirement.stop, possible, segment.errors_count)
        cdef int64_t at
        cdef uint64_t bit = <uint64_t> 1 << (requirement.entry & 63)
        assert bucket + count <= table.buckets
        if verdict == REFUSED and count > 1:
            return 0
        for at in range(bucket, bucket + count):
            at = (at * segment.bucket_step + (requirement.entry >> 9) * segment.line_step
                  + (requirement.entry >> 6 & 7))
            table.passed[at] = table.passed[at] & ~bit if verdict == REFUSED else table.passed[at] | bit
            table.open[at] = table.open[at] | bit if verdict == OPEN else table.open[at] & ~bit
        return 0

    cdef int truth(self, const Leaf* leaf, const Value* value) except -1:
        cdef Scratch scratch
        memset(&scratch, 0, sizeof(Scratch))
        cdef int truth = leaf_truth(leaf, value, &scratch)
        free_scratch(&scratch)
        return 1 << truth

    cdef int judge(self, const Requirement* requirement) except -1:
        """Mark every bucket, by asking the leaf itself about the bucket's values."""
        cdef const Leaf* leaf = requirement.leaf
        cdef Table* table = &self.segment.tables[requirement.table]
        cdef int first = FIRST_TEXT + table.texts, bucket, last, unknown, numbers, index, own
        cdef int64_t low, high
        cdef Value value
        memset(&value, 0, sizeof(Value))
        value.type = NULL_VALUE
        self.mark(requirement, NULL_BUCKET, 1, self.truth(leaf, &value))
        self.mark(requirement, ODD_BUCKET, 1, MAY_BE_FALSE | MAY_BE_TRUE | MAY_BE_UNKNOWN | MAY_RAISE)
        unknown = MAY_BE_FALSE | MAY_BE_TRUE if leaf.kind == PREFIX else self.truth(leaf, &self.unknown_text)
        value.type = INT
        value.payload.integer = 0
        numbers = self.truth(leaf, &value)
        value.type = DOUBLE
        value.payload.real = 0.0
        numbers |= self.truth(leaf, &value)
        self.mark(requirement, STRANGE_BUCKET, 1, unknown)
        self.mark(requirement, FIRST_TEXT, table.texts, unknown)
        if leaf.kind == PREFIX:
            self.judge_prefix(requirement)
        elif table.text_bound_count:
            self.mark(requirement, first_text_stretch(table), table.text_bound_count + 1, unknown)
        if leaf.kind == TEXT or leaf.kind == TEXTS:
            own = MAY_BE_TRUE if leaf.kind == TEXT else self.truth(leaf, &leaf.texts[0])
            for index in range(requirement.point_count):
                bucket = FIRST_TEXT + (self.requirements.point(requirement, index).code & (table.texts - 1))
                # In a bucket that two strings share the message may have either.
                self.mark(requirement, bucket, 1, own if table.distinct <= table.texts else own | unknown)
        if leaf.kind != NUMBER:
            self.mark(requirement, first, table.bound_count + 1, numbers)
        else:
            bucket = 0
            last = table.bound_count
            if verdict_of(leaf, requirement.stop, MAY_BE_FALSE, self.segment.errors_count) == REFUSED:
                # Refused is what they are until marked, so only the stretches that the interval touches count.
                bucket = rank(table.bounds, table.bound_count, min(leaf.real_low, key_of(leaf.low)))
                last = rank(table.bounds, table.bound_count, max(leaf.real_high, key_of(leaf.high)))
            for bucket in range(bucket, last + 1):
                low = table.bounds[bucket - 1] if bucket else INT64_MIN
                high = table.bounds[bucket] - 1 if bucket < table.bound_count else INT64_MAX
                self.mark(requirement, first + bucket, 1, interval_truths(leaf, low, high))
        if requirement.unknown_text:         # an unknown string may be the one that it names
            if table.text_bound_count:
                self.mark(requirement, first_text_stretch(table), table.text_bound_count + 1,
                          MAY_BE_FALSE | MAY_BE_TRUE)
            self.mark(requirement, STRANGE_BUCKET, 1, MAY_BE_FALSE | MAY_BE_TRUE)
        return 0

    cdef int judge_prefix(self, const Requirement* requirement) except -1:
        """How a string begins: the texts one by one if each has a bucket, otherwise by the order of texts."""
        cdef const Leaf* leaf = requirement.leaf
        cdef Table* table = &self.segment.tables[requirement.table]
        cdef const Point* point
        cdef uint32_t length = leaf.constant.length
        cdef int64_t low, high, least, most, index
        cdef int bucket
        cdef bint exact = beginning(leaf, &least, &most)
        if self.texts_of is None:
            self.find_texts()
        for index in self.texts_of.get(requirement.table, ()):
            point = &self.segment.points[index]
            self.mark(
                requirement, FIRST_TEXT + point.code, 1,
                MAY_BE_TRUE if point.length >= length
                and not memcmp(point.bytes, leaf.constant.payload.text, length) else MAY_BE_FALSE)
        for bucket in range(table.text_bound_count + 1 if table.text_bound_count else 0):
            low = table.text_bounds[bucket - 1] if bucket else INT64_MIN
            high = table.text_bounds[bucket] - 1 if bucket < table.text_bound_count else INT64_MAX
            self.mark(
                requirement, first_text_stretch(table) + bucket, 1,
                covered(least, most, low, high) | (0 if exact or most < low or least > high else MAY_BE_FALSE))
        return 0

    cdef int find_texts(self) except -1:
        cdef int64_t index
        cdef const Point* point
        cdef const Table* table
        self.texts_of = {}
        for index in range(self.segment.point_room):
            point = &self.segment.points[index]
            if point.of & 3 == WORD:
                table = &self.segment.tables[point.of >> 2]
                if table.distinct <= table.texts:
                    self.texts_of.setdefault(point.of >> 2, []).append(index)
        return 0


cdef BucketVerdicts bucket_verdicts_of(Segment segment, RequirementList requirements, int longest):
    cdef BucketVerdicts verdicts = BucketVerdicts()
    verdicts.segment = segment
    verdicts.requirements = requirements
    verdicts.unknown_bytes = b"x" * (longest + 1)
    verdicts.unknown_text.type = STRING
    verdicts.unknown_text.encoding = LATIN1
    verdicts.unknown_text.length = longest + 1
    verdicts.unknown_text.payload.text = <const char*> verdicts.unknown_bytes
    return verdicts
