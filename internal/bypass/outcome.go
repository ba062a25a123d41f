package bypass

// Outcome is the result of a use of a token.
type Outcome uint8

// The outcomes.
const (
	// Used means that the request passed the limits. After all others the limits decide.
	Used Outcome = iota
	// OverRate means that the token has admitted as much as its rate.
	OverRate
	// Expired means that the token has ended.
	Expired
	// TooEarly means that the token has not begun.
	TooEarly
	// Revoked means that the id of the token is revoked.
	Revoked
	// OtherTenant means that the token is for another tenant.
	OtherTenant
	// Invalid means that no key has signed the token, that its claims are wrong, or that it ends
	// later than MaxLife from now.
	Invalid
	// Unchecked means that the client has sent too many tokens that no key has signed.
	Unchecked

	numOutcomes
)

var outcomeNames = [numOutcomes]string{"used", "over_rate", "expired", "too_early", "revoked", "other_tenant", "invalid", "unchecked"}

// Outcomes are all outcomes.
func Outcomes() (all []Outcome) {
	for o := range numOutcomes {
		all = append(all, o)
	}
	return all
}

// String returns the word that metrics and logs have for an outcome.
func (o Outcome) String() string { return outcomeNames[o] }
