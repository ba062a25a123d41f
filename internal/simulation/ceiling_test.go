package simulation

// ceiling is how many times too much may be admitted at most when whoever counts
// the instances is wrong.
const ceiling = 3
