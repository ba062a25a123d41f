package drill

var lostCell = Drill{
	Name: "lost-cell", Summary: "one region's cell is gone",
	Goal: "The other cells have its part of each limit within a minute, and it takes its part again when it is back.",
	Steps: []Step{
		{Text: "Note the cells, their parts and the version of their set.", Commands: []string{"limitgate cells --cells TABLE --table TABLE"}},
		{Text: "Planned: take the part of a cell away before its traffic ends, and have the traffic go elsewhere.", Commands: []string{"limitgate cells drain --cells TABLE CELL"}},
		{Text: "Unplanned: end all proxies of one cell, in an environment for tests, without draining it."},
		{
			Text:     "Look at a cell that is left, and at the sum over all of them in the control plane.",
			Commands: []string{"limitgate limits --addr 127.0.0.1:6380 " + Tenant, "curl -s http://127.0.0.1:9181/metrics"},
		},
		{Text: "Then cut a cell off from AWS while it has traffic: it goes on with its last part, which the others have too. That is the time in which all cells together admit more than a limit."},
	},
	Signs: []Sign{
		{InLog, "cells changed", "of the control plane, with the new version and parts"},
		{InLog, "failed to send the heartbeat of the cell, keeping its part of the limits", "of the proxies of a cell that is cut off"},
		{InLog, "cells together admit more than a limit", "of the control plane, with the worst bucket"},
		{InMetrics, "limitgate_active_cell_count", "one less, in all proxies that are left"},
		{InMetrics, "limitgate_cell_share", "larger; it adds up to 1 over the cells"},
		{InMetrics, "limitgate_cell_set_version", "one more"},
		{InMetrics, "limitgate_per_cell_limit_effective", "larger for each limit"},
		{InMetrics, "limitgate_over_admission_ratio", "above 1 while a cell that is cut off still admits its part"},
		{InReplies, "gone", "in limitgate cells, the state of the cell; draining after drain"},
		{InAlerts, "LimitgateOverAdmission", "fires at 1.5 times a limit, LimitgateOverAdmissionTriple at three times"},
	},
	Times: []Time{
		{"between two heartbeats of a cell", "five to ten seconds", "cells.md"},
		{"until a cell without a heartbeat is gone", "30 s", "cells.md"},
		{"until the others have its part", "some seconds more, for the control plane and a message", "cells.md"},
		{"until the sum over all cells shows it", "a minute, the time between two reports", "cells.md"},
		{"until a cell that is gone is forgotten by itself", "a day", "cells.md"},
	},
	End: []Step{
		{Text: "Start its proxies again: the cell joins by its first heartbeat. One that was drained is joined by hand.", Commands: []string{"limitgate cells join --cells TABLE CELL"}},
		{Text: "One that is gone for good is removed.", Commands: []string{"limitgate cells forget --cells TABLE CELL"}},
		{Text: "Look whether the parts are those of the beginning.", Commands: []string{"limitgate cells --cells TABLE --table TABLE"}},
	},
	Pages: []Where{{"cells.md", "Joining, leaving, being cut off"}, {"runbook.md", "Cells admit more than a limit"}},
}
