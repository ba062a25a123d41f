package drill

// Tenant is the tenant whose checks a drill sends.
const Tenant = "drill"

// A Drill is the practice of one outage.
type Drill struct {
	Name string `json:"name"`
	// Summary is the outage, as a clause without a point.
	Summary string `json:"summary"`
	// Runs reports whether Run can make the outage.
	Runs bool `json:"runs"`
	// Goal is what the practice proves.
	Goal  string  `json:"goal"`
	Steps []Step  `json:"steps"`
	Signs []Sign  `json:"signs"`
	Times []Time  `json:"times"`
	End   []Step  `json:"end"`
	Pages []Where `json:"pages"`
}

// A Step is something to do.
type Step struct {
	Text     string   `json:"text"`
	Commands []string `json:"commands,omitempty"`
}

// The places of signs.
const (
	InMetrics = "metric"
	InLog     = "log"
	InReplies = "reply"
	InAlerts  = "alert"
)

// A Sign is something to see.
type Sign struct {
	// In is the place where it shows: a metric, the log, a reply or an alert.
	In string `json:"in"`
	// Name is the text there.
	Name string `json:"name"`
	// Means is when it shows, or what it means.
	Means string `json:"means"`
}

// A Time is how long a part of an outage may take.
type Time struct {
	What string `json:"what"`
	Long string `json:"long"`
	// From is the setting or the page that decides it.
	From string `json:"from"`
}

// Where is a section of the documentation.
type Where struct {
	Page    string `json:"page"`
	Heading string `json:"heading"`
}

// All returns the drills.
func All() []Drill { return []Drill{failover, failOpen, badLimit, secretRotation, lostCell} }

// Find returns the drill of a name.
func Find(name string) (d Drill, found bool) {
	for _, d := range All() {
		if d.Name == name {
			return d, true
		}
	}
	return Drill{}, false
}

// markSteps say how a store and a tenant are prepared for a drill that Run makes.
var markSteps = []Step{
	{
		Text:     "Mark the store as one for tests. The mark expires, so that it is not left behind. A cluster needs it once (redis-cli -c).",
		Commands: []string{"redis-cli -c -h HOST -p PORT SET " + MarkKey + " " + markValue + " EX 3600"},
	},
	{
		Text:     "Give the tenant " + Tenant + " a limit without a lease that is above the checks of the drill, 100 a second, so that the store decides them. The plan of examples/limits.yaml does.",
		Commands: []string{"limitgate limits explain limits.yaml " + Tenant + ` - -`},
	},
}
