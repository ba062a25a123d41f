// Package jwks has the public keys that verify the signatures of JSON Web Tokens, from a file or
// by https. The keys are read again while the program runs, and never waited for.
package jwks
