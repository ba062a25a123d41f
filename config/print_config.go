package config

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// PrintConfig writes the value and source of each setting: as a table with the columns
// NAME, VALUE and SOURCE, or as a JSON array of objects with the keys name, value and
// source. Of a secret it writes only the path.
func PrintConfig(w io.Writer, origins []Origin, asJSON bool) {
	if asJSON {
		if origins == nil {
			origins = []Origin{} // nil would be written as null
		}
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		_ = e.Encode(origins)
		return
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "NAME\tVALUE\tSOURCE")
	for _, o := range origins {
		value := plain(o.Value)
		if value == "" {
			value = `""`
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", o.Name, value, plain(o.Source))
	}
	_ = tw.Flush()
}
