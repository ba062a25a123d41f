// Package isolation makes random commands of two users, each of whom may do everything for a
// tenant of their own. Tests check with them that nothing which one user sends has an influence
// on the replies to the other.
package isolation
