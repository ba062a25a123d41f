package limiter

// ShareTurns makes b place the turns of denied callers as a does.
func ShareTurns(a, b *Limiter) { b.retries.seed = a.retries.seed }
