package httpapi

import (
	"slices"

	"github.com/valyala/fasthttp"

	"github.com/limitgate/limitgate/limit"
)

// addTrace adds the dimension of Options.TraceHeader to a request in JSON, if it has none of that name
// and has room for it.
func (s *Server) addTrace(ctx *fasthttp.RequestCtx, r *request) {
	name := s.opts.TraceHeader
	if name == "" || len(r.dims) >= limit.MaxDims || slices.ContainsFunc(r.dims, func(d [2][]byte) bool { return string(d[0]) == name }) {
		return
	}
	if value := single(&ctx.Request.Header, name); limit.CheckName(string(value)) == nil {
		r.dims = append(r.dims, [2][]byte{[]byte(name), value})
	}
}
