package dashboard

import (
	"net/http"

	"github.com/limitgate/limitgate/internal/users"
)

// mostCellLimits bounds the limits of a reply about a cell: the page shows all of them in one table.
const mostCellLimits = 500

// CellLimit is a cell's part of a limit.
type CellLimit struct {
	Limit string `json:"limit"`
	Plan  string `json:"plan"`  // "" for a shared limit
	Whole string `json:"whole"` // the rate of all cells
	// Count is this cell's part of the COUNT of that rate, or of the slots. Capacity is its part of
	// WholeCapacity, the units that a bucket of all cells holds.
	Count         int64 `json:"count"`
	Capacity      int64 `json:"capacity"`
	WholeCapacity int64 `json:"whole_capacity"`
}

// cells answers with this cell's part of the limits of plans and the shared ones. The list is empty
// for a proxy outside cells.
func (d *Dashboard) cells(w http.ResponseWriter, _ *http.Request, _ *users.User) {
	limits := d.opts.CellLimits()
	shown := min(len(limits), mostCellLimits)
	sendJSON(w, http.StatusOK, struct {
		Limits []CellLimit `json:"limits"`
		More   int         `json:"more"` // limits that are not in the list
	}{append([]CellLimit{}, limits[:shown]...), len(limits) - shown})
}
