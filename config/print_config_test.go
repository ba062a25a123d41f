package config

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestPrintConfig(t *testing.T) {
	var out bytes.Buffer
	PrintConfig(&out, []Origin{
		{"listen", "127.0.0.1:6380", "default"},
		{"admin", "", "env LIMITGATE_ADMIN"},
		{"limits", "a\tb\n", "file limits\n.yaml:7"},
	}, false)
	const want = `NAME    VALUE           SOURCE
listen  127.0.0.1:6380  default
admin   ""              env LIMITGATE_ADMIN
limits  "a\tb\n"        "file limits\n.yaml:7"
`
	if out.String() != want {
		t.Errorf("the table is\n%s\nwant\n%s", out.String(), want)
	}
}

// TestOriginOfShare: a share has its sign, however it is written.
func TestOriginOfShare(t *testing.T) {
	for written, want := range map[string]string{"5": "5%", "1.05": "1.05%", "0.05%": "0.05%", "7%": "7%"} {
		_, origins, _, err := Load([]string{"--limits", "x", "--limits-canary", written}, nil, nil)
		i := slices.IndexFunc(origins, func(o Origin) bool { return o.Name == "limits_canary" })
		if err != nil || i < 0 || origins[i].Value != want {
			t.Errorf("%s: %v, %v", written, origins, err)
		}
	}
}

// TestShareBelowOne: a share below 1 % needs its sign, as it may be meant as a fraction.
func TestShareBelowOne(t *testing.T) {
	_, _, _, err := Load([]string{"--limits", "x", "--limits-canary", "0.05"}, nil, nil)
	if want := `"0.05" is less than 1 %: write 0.05%, or 5% for that share of all`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestPrintConfigAsJSON(t *testing.T) {
	origins := []Origin{{"admin", "", "env LIMITGATE_ADMIN"}, {"limits", "a&b", "default"}}
	for _, want := range [][]Origin{origins, {}} {
		var out bytes.Buffer
		PrintConfig(&out, want, true)
		var got []Origin
		if err := json.Unmarshal(out.Bytes(), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s means %+v, %v", out.String(), got, err)
		}
	}
	var out bytes.Buffer
	PrintConfig(&out, origins[1:], true)
	const want = "[\n  {\n    \"name\": \"limits\",\n    \"value\": \"a&b\",\n    \"source\": \"default\"\n  }\n]\n"
	if out.String() != want {
		t.Errorf("the JSON is\n%s\nwant\n%s", out.String(), want)
	}
}

func TestPrintConfigShowsNoSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("correct horse battery staple"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, origins, err := load([]string{"--privacy-ip-secret-file", path, "--print-config"}, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, asJSON := range []bool{false, true} {
		var out bytes.Buffer
		PrintConfig(&out, origins, asJSON)
		if !strings.Contains(out.String(), path) || strings.Contains(out.String(), "horse") {
			t.Errorf("of the secret is shown\n%s", out.String())
		}
		if strings.Contains(out.String(), "print_config") {
			t.Errorf("the question is listed with the settings\n%s", out.String())
		}
	}
}
