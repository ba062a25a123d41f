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
	var number string
	switch {
	case fits.Units == 0:
		return fmt.Sprintf("%s; set it to the units a second that the service behind bears, divided by the number of proxies: %s", CeilingOff, fits.Why)
	case n == 0:
		number = fmt.Sprintf("%d divided by the number of proxies", fits.Units)
	case n == 1:
		number = fmt.Sprintf("%d divided by the number of proxies, 1 now", fits.Units)
	default:
		number = fmt.Sprintf("%d, that is %d divided by %d proxies", (fits.Units+n-1)/n, fits.Units, n)
	}
	return fmt.Sprintf("%s; set it to %s, or to less if the service behind bears less: %d units a second are enough for what %s", CeilingOff, number, fits.Units, fits.Why)
}
