package httpapi

import (
	"encoding/json"
	"testing"
)

// FuzzDecode: a body is a mistake with a sentence, or requests with the fields of its operation; a
// body that encoding/json refuses is never accepted.
func FuzzDecode(f *testing.F) {
	for i := range operations {
		f.Add(i, []byte(operations[i].example))
		f.Add(i, []byte("["+operations[i].example+", {}]"))
	}
	f.Add(0, []byte(`{"tenant": "a", "dims": {"x": null}, "cost": 1e3}`))
	f.Fuzz(func(t *testing.T, n int, body []byte) {
		o := &operations[uint(n)%uint(len(operations))]
		requests, list, err := o.decode(body)
		if err != nil {
			if err.Error() == "" || len(err.Error()) > 1000 {
				t.Errorf("%q: the error has %d bytes", body, len(err.Error()))
			}
			return
		}
		if !json.Valid(body) {
			t.Errorf("%q is accepted", body)
		}
		if list && !o.decides() || !list && len(requests) != 1 {
			t.Errorf("%q: %d requests, list %t", body, len(requests), list)
		}
		for i := range requests {
			if err := o.checkRequired(&requests[i]); err != nil {
				t.Errorf("%q: %v", body, err)
			}
			o.args(&requests[i])
		}
	})
}

// FuzzQuery: the same for the query of a request, and for the parameters of /check.
func FuzzQuery(f *testing.F) {
	f.Add([]byte("tenant=a&dim.user=u1&cost=5"))
	f.Add([]byte("deny=403&ip=%zz"))
	f.Fuzz(func(t *testing.T, query []byte) {
		o := operationOf("peek")
		if r, err := o.decodeQuery(query); err == nil {
			o.args(&r)
		}
		if q, mistake := parseParameters(query); mistake == "" && q.deny != 403 && q.deny != 429 {
			t.Errorf("%q: deny %d", query, q.deny)
		}
	})
}
