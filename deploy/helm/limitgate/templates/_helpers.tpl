{{- define "limitgate.selector" -}}
app.kubernetes.io/name: limitgate
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}
{{- define "limitgate.labels" -}}
{{ include "limitgate.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- end }}
{{- define "limitgate.settings" -}}
{{- $own := dict "listen" ":6380" "users" "/etc/limitgate/secrets/users" "admin" ":9180" "unsafe_open" true "shutdown_timeout" "10s" "redis" (dict "password_file" "/etc/limitgate/secrets/redis-password") -}}
{{- toYaml (mergeOverwrite (deepCopy .Values.settings) $own) -}}
{{- end }}
