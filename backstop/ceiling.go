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
	const less = "less, if what stands behind bears less"
	n := int64(proxies)
	switch {
	case fits.Units == 0:
		return fmt.Sprintf("%s; %s, so that no number follows from the limits: choose what stands behind bears, divided by the number of proxies", CeilingOff, fits.Why)
	case n == 0:
		return fmt.Sprintf("%s; %d divided by the number of proxies would fit, since %s; %s", CeilingOff, fits.Units, fits.Why, less)
	case n == 1:
		return fmt.Sprintf("%s; %d would fit, since %s; %s", CeilingOff, fits.Units, fits.Why, less)
	default:
		return fmt.Sprintf("%s; %d would fit, that is %d divided by %d proxies, since %s; %s", CeilingOff, (fits.Units+n-1)/n, fits.Units, n, fits.Why, less)
	}
}
