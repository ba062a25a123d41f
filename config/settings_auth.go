package config

// authSettings are the settings of users and tokens of clients.
func authSettings(s *Settings) settings {
	return settings{
		{
			name: "users", group: groupListen,
			usage: "the file of users, read again on changes; clients then must authenticate", value: filePath(&s.Users),
		},
		{
			name: "jwt.jwks", group: groupListen,
			usage: "the public keys of tokens with which clients may authenticate, a file or an https URL", value: reference(&s.JWTKeys, "FILE|URL"),
		},
		{
			name: "jwt.issuer", group: groupListen,
			usage: "the issuer that tokens must have", value: reference(&s.JWTIssuer, "NAME"),
		},
		{
			name: "jwt.audience", group: groupListen,
			usage: "the audience that tokens must have", value: reference(&s.JWTAudience, "NAME"),
		},
		{
			name: "jwt.tenant_claim", group: groupListen, initial: "tenant_id",
			usage: "the claim with the tenant of a client", value: reference(&s.JWTTenantClaim, "NAME"),
		},
		{
			name: "bypass.jwks", group: groupListen,
			usage: "the public keys of tokens that let requests pass the limits, a file or an https URL", value: reference(&s.BypassKeys, "FILE|URL"),
		},
		{
			name: "bypass.revoked", group: groupListen,
			usage: "the file with the ids of such tokens that are revoked, read again on changes", value: filePath(&s.BypassRevoked),
		},
		{
			name: "unsafe_open", group: groupListen, initial: "false",
			usage: "allow addresses that others on the network can reach", value: toggle(&s.UnsafeOpen),
		},
	}
}
