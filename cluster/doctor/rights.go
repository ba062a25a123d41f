package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/cluster"
)

// rightProbes has for each right of cluster.Rights a command that needs it and changes nothing:
// its key does not exist, or its arguments are refused after the right was checked. KEY stands for
// the key. Connecting needs the others.
var rightProbes = map[string]string{
	"+info": "INFO server", "+role": "ROLE", "+ping": "PING", "+time": "TIME", "+evalsha": "EVALSHA 0000000000000000000000000000000000000000 0",
	"+cluster|slots": "CLUSTER SLOTS", "+cluster|info": "CLUSTER INFO", "+asking": "ASKING",
	"+get": "GET KEY", "+mget": "MGET KEY", "+setrange": "SETRANGE KEY x v", "+set": "SET KEY x XX", "+getex": "GETEX KEY", "+strlen": "STRLEN KEY", "+exists": "EXISTS KEY", "+del": "DEL KEY", "+unlink": "UNLINK KEY",
	"+hget": "HGET KEY f", "+hgetall": "HGETALL KEY", "+hset": "HSET KEY f v f", "+hdel": "HDEL KEY f", "+hkeys": "HKEYS KEY", "+hlen": "HLEN KEY",
	"+pttl": "PTTL KEY", "+pexpireat": "PEXPIREAT KEY 1", "+scan": "SCAN 0 MATCH KEY COUNT 1",
	"+zadd": "ZADD KEY nan m", "+zcard": "ZCARD KEY", "+zcount": "ZCOUNT KEY 0 0", "+zrangebyscore": "ZRANGEBYSCORE KEY 0 0", "+zrem": "ZREM KEY m",
	"+zremrangebyscore": "ZREMRANGEBYSCORE KEY 0 0", "+zrevrange": "ZREVRANGE KEY 0 0", "+zrevrangebyscore": "ZREVRANGEBYSCORE KEY 0 0", "+zscore": "ZSCORE KEY m",
}

// clusterRights are the rights that only a cluster needs.
var clusterRights = []string{"+cluster|slots", "+cluster|info", "+asking"}

// lesserRights are the rights without which decisions are made all the same: other checks report
// what does not work then.
var lesserRights = []string{"+ping", "+mget", "+hlen", "+hgetall", "+unlink", "+cluster|info"}

// missingRights returns the rights of cluster.Rights that the user does not have.
func (m *masterInspection) missingRights(ctx context.Context) (missing []string) {
	key := "lg:probe:rights"
	if len(m.tags) > 0 {
		key = m.tags[0] + ":rights"
	}
	for right := range strings.FieldsSeq(cluster.Rights) {
		probe := rightProbes[right]
		if probe == "" || !m.layout.Cluster && slices.Contains(clusterRights, right) {
			continue
		}
		var words []any
		for word := range strings.FieldsSeq(probe) {
			if word == "KEY" {
				word = key
			}
			words = append(words, word)
		}
		if err := m.client.Do(ctx, words...).Err(); err != nil && lacksRights(err.Error()) && !strings.Contains(err.Error(), " access ") {
			missing = append(missing, right)
		}
	}
	return missing
}

// checkRights reports the rights that are missing, whatever their lack has led to.
func (r *Report) checkRights() {
	r.each("rights", func(m *MasterReport) (Severity, string) {
		severity := SeverityWarn
		for _, right := range m.MissingRights {
			if !slices.Contains(lesserRights, right) {
				severity = SeverityFail
			}
		}
		if len(m.MissingRights) == 0 {
			return SeverityOK, ""
		}
		return severity, fmt.Sprintf("the user lacks %s: add what is missing, or some decisions, releases and resets go wrong", strings.Join(m.MissingRights, " "))
	})
}
