package limit

import "strings"

// Bucket names. A bucket of a tenant is called
//
//	lg:t:{TENANT}:ID;A;DIM=VALUE;DIM=VALUE
//
// and one that spans tenants
//
//	lg:s:{ID;A;DIM=VALUE}
//
// where A is the letter of the algorithm. The braces are a Redis Cluster hash tag: all
// buckets of a tenant share its hash slot, and a shared bucket has a hash slot of its
// own. If the limit counts by tenant alone, or by dimensions with a declared finite list
// of values, the bucket is a field of the tenant's string: the key ends behind the tag and
// the rest names the field.
//
// VALUE and TENANT are escaped, so that two different buckets never share a name and no
// value can move a bucket to another hash slot. ID and DIM need no escaping: their
// alphabet has none of the special characters. A missing value that is shared (`missing:
// share`) leaves out the "=", which no value does.
const (
	tenantPrefix = "lg:t:{"
	sharedPrefix = "lg:s:{"
	// TagStart is the position of the tag's content in a name, and TagEnd the character behind
	// it, which occurs nowhere else in a name.
	TagStart = len(tenantPrefix)
	TagEnd   = '}'
)

// All prefixes have the same length, see TagStart: a difference does not compile.
var _ = [1]struct{}{}[len(sharedPrefix)-len(tenantPrefix)+len(inlinePrefix)-len(tenantPrefix)]

const hexDigits = "0123456789ABCDEF"

// hasMeaning has the characters that have a meaning in a name.
var hasMeaning = [256]bool{'%': true, '{': true, '}': true, ';': true}

// needsEscapes reports whether some character of s has a meaning in a name.
func needsEscapes(s string) bool {
	for i := range len(s) {
		if hasMeaning[s[i]] {
			return true
		}
	}
	return false
}

// appendEscaped appends s. It writes the characters that have a meaning in a name as %XX.
func appendEscaped(dst []byte, s string) []byte {
	start := 0
	for i := range len(s) {
		if c := s[i]; hasMeaning[c] {
			dst = append(dst, s[start:i]...)
			dst = append(dst, '%', hexDigits[c>>4], hexDigits[c&15])
			start = i + 1
		}
	}
	return append(dst, s[start:]...)
}

// appendName appends the name of the bucket of l for the request. It also returns the
// lengths of the part that is the bucket's key in Redis, and of the part up to the end of
// the hash tag.
func (l *Limit) appendName(dst []byte, req *Request, addrs *AddrHasher) (extended []byte, keyLen, tagLen int) {
	begin := len(dst)
	if l.byTenant {
		dst = append(dst, tenantPrefix...)
		dst = appendEscaped(dst, req.Tenant)
		dst = append(dst, TagEnd)
		tagLen = len(dst) - begin
		dst = l.appendRest(dst, req, addrs)
	} else {
		dst = append(dst, sharedPrefix...)
		dst = l.appendValues(append(dst, l.suffix[1:]...), req, addrs)
		dst = append(dst, TagEnd)
		tagLen = len(dst) - begin
	}
	if l.field {
		return dst, tagLen, tagLen
	}
	return dst, len(dst) - begin, tagLen
}

// appendRest appends the part of the name of a tenant's bucket that is behind the tag.
func (l *Limit) appendRest(dst []byte, req *Request, addrs *AddrHasher) []byte {
	return l.appendValues(append(dst, l.suffix...), req, addrs)
}

// appendValues appends the dimensions of l with their values.
func (l *Limit) appendValues(dst []byte, req *Request, addrs *AddrHasher) []byte {
	for i := range l.by {
		d := &l.by[i]
		dst = append(dst, d.label...)
		choice, value, ok := d.pick(req)
		if !ok {
			continue
		}
		dst = append(dst, choice.label...)
		switch {
		case choice.kind == propertyIP:
			dst = addrs.Append(dst, req.Addr)
		case choice.hashed:
			dst = addrs.AppendValue(dst, value)
		default:
			dst = appendEscaped(dst, value)
		}
	}
	return dst
}

// IsTenantBucket reports whether a name is that of the bucket of a tenant with the part rest
// behind the tag. No character of the tenant is escaped.
func IsTenantBucket[N string | []byte](name N, tenant string, rest []byte) bool {
	n := TagStart + len(tenant)
	return len(name) == n+1+len(rest) && string(name[TagStart:n]) == tenant && string(name[n+1:]) == string(rest) &&
		name[n] == TagEnd && string(name[:TagStart]) == tenantPrefix
}

// recordMark separates a hash tag from the id of a request: no bucket's name continues
// with it.
const recordMark = ":~"

// IsRecord reports whether a key is a record key, not the key of a bucket.
func IsRecord(name string) bool { return strings.Contains(name, string(TagEnd)+recordMark) }

// nameRecords sets the record keys of a request's calls: the hash tag of their buckets,
// followed by the tenant unless the tag contains it, and the id.
func (b *Buffer) nameRecords(req *Request, calls []Call) {
	for i := range calls {
		c := &calls[i]
		it := &b.Items[c.First]
		if c.Local || req.Hold != HoldNone && it.Limit.SpansTenants() && (req.Fresh || req.Hold == HoldSlot) {
			continue // no client repeats it, or the record would outlive its hold
		}
		begin := len(b.names)
		b.names = append(b.names, it.Name[:it.TagLen]...)
		c.RecordTTL = IdempotencyTTL
		switch {
		case req.Hold == HoldNone && !it.Limit.SpansTenants():
			b.names = appendEscaped(append(b.names, recordMark...), req.ID)
		case req.Hold == HoldNone:
			b.names = appendEscaped(append(b.names, recordMark...), req.Tenant)
			b.names = appendEscaped(append(b.names, ';'), req.ID)
		default:
			b.names = appendHoldName(b.names, req.Hold, req.ID)
			c.RecordTTL, c.Hold = req.HoldFor, req.Hold
		}
		if req.Hold != HoldNone && it.Limit.SpansTenants() { // only the tenant's own buckets are settled
			b.names = appendEscaped(append(b.names, ';'), req.Tenant)
			c.Hold, c.RecordTTL = HoldNone, IdempotencyTTL
		}
		c.RecordKey = b.names[begin:len(b.names):len(b.names)]
	}
}

// TenantKey returns the key of the string that holds a tenant's fixed buckets. Keys of its
// other buckets begin with it, followed by a colon.
func TenantKey(tenant string) string {
	return string(append(appendEscaped([]byte(tenantPrefix), tenant), TagEnd))
}

// OwnedBy reports whether a bucket name, or the part of it behind the tenant's key,
// belongs to the limit.
func OwnedBy(rest, id string) bool {
	after, ok := strings.CutPrefix(rest, ":"+id)
	return ok && strings.HasPrefix(after, ";")
}

// BucketsOf returns a function that reports whether a bucket's name is one of the
// tenant's, of the limit id unless that is empty; or without a tenant, one of the shared
// limit id.
func BucketsOf(tenant, id string) func(name string) bool {
	if tenant == "" {
		return func(name string) bool { return strings.HasPrefix(name, SharedKeyPrefix(id)) }
	}
	key := TenantKey(tenant)
	return func(name string) bool {
		rest, ok := strings.CutPrefix(name, key)
		return ok && (id == "" || OwnedBy(rest, id))
	}
}

// SharedKeyPrefix returns the prefix of the keys of a shared limit's buckets.
func SharedKeyPrefix(id string) string { return sharedPrefix + id + ";" }
