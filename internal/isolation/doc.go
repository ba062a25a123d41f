// Package isolation makes random commands of two users, who have all rights for a tenant each.
// Tests of isolation compare the replies to one of them beside the other with those that it gets
// alone.
package isolation
