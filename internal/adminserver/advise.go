package adminserver

import (
	"fmt"
	"net/http"
)

// Advise serves a mux without a pattern for all paths. It answers a request with the wrong method by the
// right one, and a path that the mux does not have by notFound. Body is an example of the bodies that POST
// takes.
func Advise(mux *http.ServeMux, notFound, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		scheme := "http"
		if r.TLS != nil {
			scheme = "https"
		}
		for _, method := range [...]string{http.MethodGet, http.MethodPost} {
			other, data := r.Clone(r.Context()), ""
			if other.Method = method; method == http.MethodPost {
				data = "-d '" + body + "' "
			}
			if _, pattern := mux.Handler(other); pattern != "" {
				w.Header().Set("Allow", method)
				http.Error(w, fmt.Sprintf("%.64s takes %s: curl %s%s://%s%.64[1]s", r.URL.EscapedPath(), method, data, scheme, r.Host), http.StatusMethodNotAllowed)
				return
			}
		}
		http.Error(w, fmt.Sprintf("there is no path %.64q; %s", r.URL.Path, notFound), http.StatusNotFound)
	})
}
