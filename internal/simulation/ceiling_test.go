package simulation

// ceiling is the maximum factor of over-admission when the source of the number of
// instances is wrong.
const ceiling = 3
