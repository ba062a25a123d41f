package adminserver

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestAdvise: the answer to a wrong path or method says what would be right.
func TestAdvise(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /json", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /healthcheck", func(http.ResponseWriter, *http.Request) {})
	h := Advise(mux, "the paths are POST /json and GET /healthcheck", `{"a":1}`)
	for _, row := range []struct {
		method, path string
		code         int
		want         string
	}{
		{"POST", "/json", 200, ""},
		{"HEAD", "/healthcheck", 200, ""},
		{"GET", "/json", 405, "/json takes POST: curl -d '{\"a\":1}' http://example.com/json\n"},
		{"PUT", "/healthcheck", 405, "/healthcheck takes GET: curl http://example.com/healthcheck\n"},
		{"GET", "/foo", 404, "there is no path \"/foo\"; the paths are POST /json and GET /healthcheck\n"},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(row.method, row.path, nil))
		if w.Code != row.code || w.Body.String() != row.want {
			t.Errorf("%s %s: %d %q", row.method, row.path, w.Code, w.Body)
		}
	}
}
