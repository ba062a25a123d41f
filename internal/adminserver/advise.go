package adminserver

import (
	"fmt"
	"net/http"
)

// Advise serves a mux, and answers a request with the wrong method by the right one, and one for a path
// that the mux does not have by the paths. Body is an example of the bodies that POST takes.
func Advise(mux *http.ServeMux, paths, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		for method, data := range map[string]string{http.MethodGet: "", http.MethodPost: "-d '" + body + "' "} {
			other := r.Clone(r.Context())
			other.Method = method
			if _, pattern := mux.Handler(other); pattern != "" {
				w.Header().Set("Allow", method)
				http.Error(w, fmt.Sprintf("%s takes %s: curl %shttp://%s%[1]s", r.URL.EscapedPath(), method, data, r.Host), http.StatusMethodNotAllowed)
				return
			}
		}
		http.Error(w, fmt.Sprintf("there is no path %.64q; the paths are %s", r.URL.Path, paths), http.StatusNotFound)
	})
}
