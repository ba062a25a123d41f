package limitimport

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestMaxLifted: the limits that an import adds to lift others are bounded, also where it adds several at once.
func TestMaxLifted(t *testing.T) {
	var b strings.Builder
	b.WriteString("geo $l { default 1; 10.0.0.0/8 0; 10.1.0.0/16 1; 10.2.0.0/16 1; } map $l $k { 0 ''; 1 $binary_remote_addr; }\n" +
		"limit_req_zone $k zone=g:1m rate=9r/s;\nserver { limit_req zone=g;\n")
	for i := range maxLifted {
		fmt.Fprintf(&b, "location /p%d/ { return 204; }\n", i)
	}
	r, err := Nginx([]byte(b.String() + "}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if lifted := bytes.Count(r.File, []byte("action: allow")); lifted < maxLifted || lifted > maxLifted+3 {
		t.Errorf("%d limits lift others", lifted)
	}
}
