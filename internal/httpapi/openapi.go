package httpapi

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"
)

// object is a JSON object of the document.
type object map[string]any

// fieldSchemas are the schemas of the fields of bodies.
var fieldSchemas = map[string]object{
	"tenant":   {"type": "string", "maxLength": 256, "description": "The customer whose limits count. Without one it is that of the user; of an id, without one, the tenant is in the id."},
	"op":       {"type": "string", "maxLength": 1024, "description": "The operation, best a route template such as POST /v1/payments."},
	"ip":       {"type": "string", "description": "The address of the client, IPv4 or IPv6."},
	"cost":     {"type": "integer", "minimum": 1, "maximum": 2147483647, "default": 1, "description": "Units to take."},
	"dims":     {"type": "object", "maxProperties": 16, "additionalProperties": object{"type": "string", "maxLength": 256}, "description": "Other dimensions by name, such as user."},
	"id":       {"type": "string", "description": "Of check, reserve and acquire: a name of this call, so that a repeated one charges once. Of the others: the id of the answer, or that name together with tenant."},
	"bypass":   {"type": "string", "description": "A token that lets the request pass the limits."},
	"limit":    {"type": "string", "description": "The id of one limit, which answers alone."},
	"estimate": {"type": "integer", "minimum": 1, "maximum": 2147483647, "description": "Units to take now."},
	"actual":   {"type": "integer", "minimum": 0, "maximum": 2147483647, "description": "Units that were used."},
	"ttl_ms":   {"type": "integer", "minimum": 1, "maximum": 3600000, "description": "How long a reservation or a slot is held."},
}

var decisionSchema = object{
	"type":     "object",
	"required": []string{"allowed", "limit", "remaining", "retry_after_ms", "reset_after_ms", "limit_id", "source"},
	"properties": object{
		"allowed":        object{"type": "boolean", "description": "Whether to go on, or to answer 429."},
		"limit":          object{"type": "integer", "description": "The capacity of the limit that decided, -1 without one."},
		"remaining":      object{"type": "integer", "description": "Units left in it, -1 without one."},
		"retry_after_ms": object{"type": "integer", "description": "0 if allowed; when denied, the time until the request may come again, -1 if never."},
		"reset_after_ms": object{"type": "integer", "description": "The time until the limit is unused again."},
		"limit_id":       object{"type": "string", "description": "The limit that decided, empty without one."},
		"source":         object{"type": "string", "enum": []string{"store", "lease", "cache", "backstop", "policy"}},
		"id":             object{"type": "string", "description": "Under which a reservation or a slot is settled."},
	},
}

var problemSchema = object{
	"type": "object",
	"properties": object{
		"type": object{"type": "string"}, "title": object{"type": "string"}, "status": object{"type": "integer"},
		"detail": object{"type": "string"}, "violated-policies": object{"type": "array", "items": object{"type": "string"}},
	},
}

// OpenAPI returns the description of the API, OpenAPI 3.1 in JSON, made of the table of operations.
func OpenAPI() []byte {
	paths := object{"/check": object{"get": object{
		"operationId": "gateway", "summary": "For gateways: 200 admits and 429 denies. It takes any method, and any path below it.",
		"parameters": []object{
			parameter("tenant", object{"type": "string"}), parameter("op", object{"type": "string"}), parameter("ip", object{"type": "string"}),
			parameter("cost", fieldSchemas["cost"]), parameter("dim.NAME", object{"type": "string"}), parameter("deny", object{"type": "integer", "enum": []int{403, 429}, "default": 429}),
		},
		"responses": object{"200": object{"description": "Admitted."}, "429": problemResponse("Denied."), "503": problemResponse("Too many requests wait that were sent ahead of an answer.")},
	}}}
	for i := range operations {
		o := &operations[i]
		methods := object{"post": o.post()}
		if o.get {
			methods["get"] = o.query()
		}
		paths[apiPath+o.name] = methods
	}
	document, _ := json.MarshalIndent(object{ // of texts and numbers, which never fails
		"openapi": "3.1.0",
		"info":    object{"title": "Limitgate", "version": "1", "description": "Rate limits: the RL.* commands over HTTP."},
		"paths":   paths,
		"components": object{
			"schemas":         object{"Decision": decisionSchema, "Problem": problemSchema},
			"securitySchemes": object{"basic": object{"type": "http", "scheme": "basic"}, "bearer": object{"type": "http", "scheme": "bearer"}},
		},
	}, "", "  ")
	return append(document, '\n')
}

// post describes the operation with its fields in a body.
func (o *operation) post() object {
	schema := o.schema()
	if o.decides() {
		schema = object{"oneOf": []object{schema, {"type": "array", "items": schema, "maxItems": maxList}}}
	}
	d := o.described("", object{"required": len(o.required) > 0, "content": object{jsonType: object{"schema": schema, "example": json.RawMessage(o.example)}}})
	if o.result == resultDecision {
		d["parameters"] = []object{asStatusParameter}
	}
	return d
}

// asStatusParameter makes a denial a status.
var asStatusParameter = object{"name": "http", "in": "query", "schema": object{"type": "integer", "enum": []int{1}}, "description": "Answers a denial with the status 429."}

// schema is the schema of one request.
func (o *operation) schema() object {
	properties := object{}
	for _, name := range namesOf(o.fields) {
		properties[name] = fieldSchemas[name]
	}
	schema := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(o.required) > 0 {
		schema["required"] = namesOf(o.required)
	}
	return schema
}

// query describes the operation with its fields as query parameters.
func (o *operation) query() object {
	d := o.described("Get", nil)
	var parameters []object
	for _, name := range slices.Sorted(slices.Values(namesOf(o.fields))) {
		if name == "dims" {
			p := parameter("dim.NAME", object{"type": "string"})
			p["description"] = "The dimension NAME."
			parameters = append(parameters, p)
			continue
		}
		parameters = append(parameters, parameter(name, fieldSchemas[name]))
	}
	if o.result == resultDecision {
		parameters = append(parameters, asStatusParameter)
	}
	d["parameters"] = parameters
	return d
}

// described is the description of the operation by one method.
func (o *operation) described(suffix string, body object) object {
	d := object{"operationId": o.name + suffix, "summary": o.summary, "responses": object{
		"200": object{"description": strings.TrimSuffix(o.summary, "."), "content": object{jsonType: object{"schema": o.resultSchema()}}},
		"400": problemResponse("A field is wrong."), "401": problemResponse("The user is not known."), "403": problemResponse("The user may not ask this."),
		"408": problemResponse("The request was not complete in time."), "413": problemResponse("The body is too large."),
		"503": problemResponse("Too many clients authenticate at once, or too many requests wait that were sent ahead of an answer."),
	}, "security": []object{{}, {"basic": []string{}}, {"bearer": []string{}}}}
	if o.name == "refund" {
		d["responses"].(object)["503"] = problemResponse("The store did not answer, too many clients authenticate at once, or too many requests wait that were sent ahead of an answer.")
	}
	if o.result == resultDecision {
		d["responses"].(object)["429"] = object{"description": "Denied, with http=1.", "content": object{jsonType: object{"schema": o.resultSchema()}}}
	}
	if body != nil {
		d["requestBody"] = body
	}
	return d
}

// resultSchema is the schema of an answer.
func (o *operation) resultSchema() object {
	one := object{"$ref": "#/components/schemas/Decision"}
	switch {
	case o.result == resultSettled:
		return object{"type": "object", "properties": object{"result": object{"type": "string", "enum": []string{"done", "already_done", "unknown"}}}}
	case o.result == resultMap:
		return object{"type": "object"}
	case o.decides():
		return object{"oneOf": []object{one, {"type": "array", "items": object{"oneOf": []object{one, {"type": "object", "properties": object{"error": object{"type": "string"}}}}}}}}
	}
	return one
}

func parameter(name string, schema object) object {
	return object{"name": name, "in": "query", "schema": schema}
}

func problemResponse(text string) object {
	return object{"description": text, "content": object{problemType: object{"schema": object{"$ref": "#/components/schemas/Problem"}}}}
}

var document = sync.OnceValue(OpenAPI)

// openAPI answers with the description.
func (s *Server) openAPI(ctx *fasthttp.RequestCtx) {
	s.write(ctx, fasthttp.StatusOK, jsonType, document())
}
