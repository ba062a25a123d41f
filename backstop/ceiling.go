package backstop

import (
	"fmt"

	"github.com/limitgate/limitgate/limit"
)

// CeilingOff is the warning for a proxy without Options.TotalRate.
const CeilingOff = "--backstop-total-rate is off, so nothing bounds all tenants together while the store is away"

// CeilingAdvice returns a sentence that recommends --backstop-total-rate with the value
// that fits for each of so many proxies; 0 means that their number is unknown.
func CeilingAdvice(fits limit.TotalRate, proxies int) string {
	n := int64(proxies)
	among := "the number of proxies"
	switch {
	case n == 1:
		among += " (1 now)"
	case n > 1:
		among = fmt.Sprintf("%d proxies", n)
	}
	if fits.Units == 0 {
		return fmt.Sprintf("%s; set it to the units a second that the service behind bears, divided by %s: %s", CeilingOff, among, fits.Why)
	}
	var number string
	share := (fits.Units + max(n, 1) - 1) / max(n, 1)
	switch {
	case fits.OneTenant:
		number = fmt.Sprintf("%d times the tenants active at once, divided by %s", fits.Units, among)
	case share == 1:
		number = "1 in each proxy, the least there is, as 0 is no bound"
	case n < 2:
		number = fmt.Sprintf("%d divided by %s", fits.Units, among)
	default:
		number = fmt.Sprintf("%d, that is %d divided by %s", share, fits.Units, among)
	}
	if fits.OneTenant || share > 1 {
		number += ", or less if the service behind bears less"
	}
	units := fmt.Sprintf("%d units", fits.Units)
	if fits.Units == 1 {
		units = "1 unit"
	}
	if fits.Rounded {
		units += " (rounded up)"
	}
	return fmt.Sprintf("%s; set it to %s: %s a second is what %s", CeilingOff, number, units, fits.Why)
}
