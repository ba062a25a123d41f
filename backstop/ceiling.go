package backstop

import (
	"fmt"

	"github.com/limitgate/limitgate/limit"
)

// CeilingOff is the warning for a proxy without Options.TotalRate.
const CeilingOff = "--backstop-total-rate is off: while the store is away nothing bounds what all tenants together are admitted"

// CeilingAdvice returns a sentence that recommends --backstop-total-rate with the value
// that fits for each of so many proxies; 0 means that their number is unknown.
func CeilingAdvice(fits limit.TotalRate, proxies int) string {
	n := int64(proxies)
	share := (fits.Units + max(n, 1) - 1) / max(n, 1)
	var number string
	enough := fmt.Sprintf("%d units a second are enough", fits.Units)
	if fits.Units == 1 {
		enough = "1 unit a second is enough"
	}
	const orLess = ", or to less if the service behind bears less"
	among := "the number of proxies"
	switch {
	case n == 1:
		among += ", 1 now"
	case n > 1:
		among = fmt.Sprintf("%d proxies", n)
	}
	switch {
	case fits.Units == 0:
		return fmt.Sprintf("%s; set it to the units a second that the service behind bears, divided by the number of proxies: %s", CeilingOff, fits.Why)
	case fits.OneTenant:
		number = fmt.Sprintf("%d times the tenants that are active at once, divided by %s", fits.Units, among) + orLess
	case share == 1:
		number = "1 in each proxy, the least there is, as 0 is no bound"
	case n < 2:
		number = fmt.Sprintf("%d divided by %s", fits.Units, among) + orLess
	default:
		number = fmt.Sprintf("%d, that is %d divided by %d proxies", share, fits.Units, n) + orLess
	}
	return fmt.Sprintf("%s; set it to %s: %s for what %s", CeilingOff, number, enough, fits.Why)
}
