package dynamo

import (
	"encoding/json"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// TestItemOfInvalidTimes: an item whose time cannot be encoded as JSON has no time, and
// so is not a limits item. Otherwise neither the item nor those after it could be sent.
func TestItemOfInvalidTimes(t *testing.T) {
	for at, ok := range map[string]bool{
		"2026-07-01T00:00:00Z": true, "2026-07-01T02:00:00.5+02:00": true, "2026-07-01T00:00:00+24:00": true,
		"0000-01-01T00:00:00+23:00": false, "0000-06-01T00:00:00Z": false, "9999-12-31T23:59:59-23:00": false, "soon": false,
	} {
		it := ItemOf(map[string]types.AttributeValue{attrKey: text("TENANT#a"), attrVersion: number(1), attrActor: text("eve"), attrAt: text(at)})
		if it.IsLimits() != ok {
			t.Errorf("%s: it is an item of limits: %v", at, !ok)
		}
		if _, err := json.Marshal(&it); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
}
