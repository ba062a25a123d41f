package alerts

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// The layout of the dashboard, in the units of Grafana, whose pages have 24 columns.
const (
	panelWidth    = 8
	panelHeight   = 8
	panelsInLine  = 3
	schemaVersion = 37 // of Grafana 9.0
)

// object is an object in JSON.
type object map[string]any

// source is the data source that the user selects.
var source = object{"type": "prometheus", "uid": "${datasource}"}

// Dashboard returns the dashboard of Grafana.
func Dashboard() ([]byte, error) {
	const jobs = `label_values({__name__=~"limitgate_connections|limitgate_over_admission_level"}, job)`
	dashboard := object{
		"uid":           "limitgate",
		"title":         "Limitgate",
		"description":   written,
		"tags":          []string{"limitgate"},
		"schemaVersion": schemaVersion,
		"version":       1,
		"editable":      true,
		"graphTooltip":  1, // a shared crosshair
		"refresh":       "30s",
		"time":          object{"from": "now-1h", "to": "now"},
		"templating": object{"list": []object{
			{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "refresh": 1, "hide": 0},
			{
				"name": "job", "label": "Job", "type": "query", "datasource": source, "refresh": 2, "hide": 0, "sort": 1,
				"definition": jobs, "query": object{"query": jobs, "refId": "jobs"},
				"multi": true, "includeAll": true, "allValue": ".*", "current": object{"text": "All", "value": "$__all"},
			},
		}},
		"annotations": object{"list": []object{{
			"name": "Limits loaded", "datasource": source, "enable": true, "iconColor": "blue", "step": "60s",
			"expr":        `max by (job) (changes(limitgate_config_loaded_timestamp_seconds{job=~"$job"}[1m])) > 0`,
			"titleFormat": "Limits loaded", "tagKeys": "job",
		}}},
		"panels": layOut(),
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(dashboard); err != nil {
		return nil, fmt.Errorf("write dashboard: %w", err)
	}
	return out.Bytes(), nil
}

// layOut returns the rows and panels with their places.
func layOut() (all []object) {
	y := 0
	for _, r := range rows {
		all = append(all, object{
			"id": len(all) + 1, "type": "row", "title": r.title, "collapsed": false, "panels": []object{},
			"gridPos": object{"x": 0, "y": y, "w": panelWidth * panelsInLine, "h": 1},
		})
		y++
		for i, p := range r.panels {
			all = append(all, p.graph(len(all)+1, i%panelsInLine*panelWidth, y+i/panelsInLine*panelHeight))
		}
		y += (len(r.panels) + panelsInLine - 1) / panelsInLine * panelHeight
	}
	return all
}

// graph returns a panel at a place.
func (p panel) graph(id, x, y int) object {
	var targets []object
	for i, q := range p.queries {
		targets = append(targets, object{
			"refId": string(rune('A' + i)), "datasource": source,
			"expr": q.expr, "legendFormat": q.legend, "range": true, "editorMode": "code",
		})
	}
	return object{
		"id": id, "type": "timeseries", "title": p.title, "datasource": source,
		"gridPos": object{"x": x, "y": y, "w": panelWidth, "h": panelHeight},
		"fieldConfig": object{
			"defaults":  object{"unit": p.unit, "min": 0, "custom": object{"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "showPoints": "never"}},
			"overrides": []object{},
		},
		"options": object{
			"legend":  object{"displayMode": "list", "placement": "bottom", "showLegend": true},
			"tooltip": object{"mode": "multi", "sort": "desc"},
		},
		"targets": targets,
	}
}
