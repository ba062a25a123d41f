package accesslog

import "strings"

// agentMark is a substring of user agents and its family.
type agentMark struct{ mark, family string }

// crawlerMarks and clientMarks are searched in this order, and the first match decides:
// crawlers pretend to be browsers, Edge and Opera to be Chrome, and Chrome to be Safari.
var (
	crawlerMarks = []agentMark{
		{"Googlebot", "Googlebot"},
		{"bingbot", "bingbot"},
		{"Baiduspider", "Baiduspider"},
		{"YandexBot", "YandexBot"},
	}
	clientMarks = []agentMark{
		{"curl/", "curl"},
		{"Wget/", "Wget"},
		{"python-requests/", "Python"},
		{"Python-urllib/", "Python"},
		{"Go-http-client/", "Go"},
		{"Edg/", "Edge"},
		{"Edge/", "Edge"},
		{"OPR/", "Opera"},
		{"Opera", "Opera"},
		{"Firefox/", "Firefox"},
		{"Chrome/", "Chrome"},
		{"CriOS/", "Chrome"},
		{"Safari/", "Safari"},
		{"MSIE ", "IE"},
		{"Trident/", "IE"},
	}
)

// agentFamily is a rough class of a user agent, good enough to distinguish browsers from
// programs and no further: "" if there is no user agent, "bot" for some other crawler,
// "other" for an unknown one.
func agentFamily(agent string) string {
	if agent == "" {
		return ""
	}
	if family := familyMarked(agent, crawlerMarks); family != "" {
		return family
	}
	lower := strings.ToLower(agent)
	for _, w := range []string{"bot", "crawl", "spider", "slurp"} {
		if strings.Contains(lower, w) {
			return "bot"
		}
	}
	if family := familyMarked(agent, clientMarks); family != "" {
		return family
	}
	return "other"
}

// familyMarked is the family of the first of marks that agent contains, or "".
func familyMarked(agent string, marks []agentMark) string {
	for _, m := range marks {
		if strings.Contains(agent, m.mark) {
			return m.family
		}
	}
	return ""
}
