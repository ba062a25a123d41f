'use strict'
// Limits GraphQL by the cost of queries: an estimate is taken before a query runs, and settled to
// what its answer has.

const { limiter } = require('./index.cjs')

// CostError is the error for a query that is too deep or too large to be counted.
class CostError extends Error {
  constructor(message) {
    super(message)
    this.name = 'CostError'
  }
}

// requestedCost estimates the cost of a parsed query: 1 for an object, 0 for a scalar, and for a
// connection 1 and its first or last times what its edges or nodes cost. Fields under two aliases
// count twice. It takes time in proportion to the query, whatever its fragments expand to.
function requestedCost(document, { variables = {}, operationName, mutation = 10, defaultSize = 10, maxDepth = 20, maxFields = 10_000 } = {}) {
  const fragments = new Map()
  const operations = []
  for (const definition of document.definitions) {
    if (definition.kind === 'FragmentDefinition') fragments.set(definition.name.value, { definition })
    if (definition.kind === 'OperationDefinition' && (!operationName || definition.name?.value === operationName)) operations.push(definition)
  }
  let fields = 0

  // sizeOf returns how many objects a field asks for, or undefined if it is no connection.
  function sizeOf(field, defaults) {
    let size
    for (const { name, value } of field.arguments ?? []) {
      if (name.value !== 'first' && name.value !== 'last') continue
      const given = value.kind === 'Variable' ? variables[value.name.value] ?? defaults.get(value.name.value) : value.value
      const n = Number(given ?? defaultSize)
      size = Math.max(size ?? 0, Number.isFinite(n) && n >= 0 ? Math.floor(n) : defaultSize)
    }
    return size
  }

  // costOf returns the cost of selections: of those that repeat in a connection, and of others.
  function costOf(selections, depth, defaults) {
    if (depth > maxDepth) throw new CostError(`the query is nested deeper than ${maxDepth}`)
    const sum = { each: 0, once: 0, repeats: false }
    for (const selection of selections) {
      if (selection.kind === 'Field') {
        if (++fields > maxFields) throw new CostError(`the query has more than ${maxFields} fields`)
        if (!selection.selectionSet) continue
        addField(sum, selection, depth, defaults)
      } else {
        const part = selection.kind === 'InlineFragment'
          ? costOf(selection.selectionSet.selections, depth + 1, defaults)
          : costOfFragment(selection.name.value, depth, defaults)
        sum.each += part.each
        sum.once += part.once
        sum.repeats ||= part.repeats
      }
    }
    return sum
  }

  function addField(sum, field, depth, defaults) {
    const size = sizeOf(field, defaults)
    const inner = costOf(field.selectionSet.selections, depth + 1, defaults)
    const name = field.name.value
    if (size !== undefined) {
      sum.once += inner.repeats ? 1 + size * inner.each + inner.once : size * (1 + inner.each + inner.once)
    } else if (name === 'edges' || name === 'nodes') {
      sum.repeats = true
      sum.each += (name === 'nodes' ? 1 : 0) + inner.each + inner.once
    } else {
      sum.once += 1 + inner.each + inner.once
    }
  }

  // costOfFragment counts each fragment once, at the depth of its first use.
  function costOfFragment(name, depth, defaults) {
    const fragment = fragments.get(name)
    if (!fragment) return { each: 0, once: 0, repeats: false } // the server refuses the query
    if (fragment.open) throw new CostError(`the fragment ${name} contains itself`)
    if (!fragment.cost || depth > fragment.depth) {
      fragment.open = true
      fragment.cost = costOf(fragment.definition.selectionSet.selections, depth + 1, defaults)
      fragment.open = false
      fragment.depth = depth
    }
    return fragment.cost
  }

  let most = 0
  for (const operation of operations) {
    const defaults = new Map((operation.variableDefinitions ?? []).map((v) => [v.variable.name.value, v.defaultValue?.value]))
    const { each, once } = costOf(operation.selectionSet.selections, 1, defaults)
    most = Math.max(most, each + once + (operation.operation === 'mutation' ? mutation : 0))
  }
  return Math.max(1, most)
}

// actualCost counts the objects of an answer; edges are part of their connection.
function actualCost(data) {
  let objects = 0
  const open = [data]
  while (open.length > 0) {
    for (const [name, value] of Object.entries(open.pop() ?? {})) {
      for (const one of Array.isArray(value) ? value.flat(Infinity) : [value]) {
        if (one === null || typeof one !== 'object') continue
        if (name !== 'edges') objects++
        open.push(one)
      }
    }
  }
  return objects
}

// limitGraphQL returns a function that runs a query within the limits of its cost. Options are those
// of limit(), of requestedCost(), and status, that of a denial: 200, as GraphQL clients read it. The
// function takes the request, the response and the query, a parsed document with variables and
// operationName, and execute, which runs it. It resolves to the result for the client.
function limitGraphQL({ status = 200, maxCost = 2147483647, mutation, defaultSize, maxDepth, maxFields, ...options }) {
  const counting = { mutation, defaultSize, maxDepth, maxFields }
  const onError = options.onError || ((err) => console.error(`limitgate: the true cost of a query is not settled: ${err.message}`))
  return async function run(req, res, { document, variables, operationName }, execute) {
    let requested
    try {
      requested = requestedCost(document, { ...counting, variables: variables ?? {}, operationName })
    } catch (err) {
      if (!(err instanceof CostError)) throw err
      return refusal(err.message, 'MAX_COST_EXCEEDED', {})
    }
    if (requested > maxCost) return refusal(`the query costs ${requested}, at most ${maxCost} is allowed`, 'MAX_COST_EXCEEDED', { requestedQueryCost: requested })
    const decide = limiter({ op: 'POST /graphql', ip: req.ip, ...options, cost: requested, settle: () => 0 })
    const decision = await decide(req)
    if (!decision) return execute()
    for (const [name, value] of Object.entries(decision.headers)) res.setHeader(name, value)
    const cost = { requestedQueryCost: requested, actualQueryCost: null, throttleStatus: throttleStatus(decision, 0) }
    if (!decision.allowed) {
      res.statusCode = status
      return refusal('Throttled', 'THROTTLED', cost, { retryAfterMs: decision.retryAfterMs })
    }
    let actual = requested // unless the query succeeds
    try {
      const result = await execute()
      actual = Math.min(requested, actualCost(result.data))
      Object.assign(cost, { actualQueryCost: actual, throttleStatus: throttleStatus(decision, requested - actual) })
      return { ...result, extensions: { ...result.extensions, cost } }
    } finally {
      await decision.commit?.(actual).catch(onError)
    }
  }
}

const refusal = (message, code, cost, more) => ({ errors: [{ message, extensions: { code, ...more } }], extensions: { cost } })

// throttleStatus describes the limit that decided, when units of it are given back, or is null where none did.
function throttleStatus(decision, back) {
  if (decision.limit < 0) return null
  const [, quota, window] = /;q=(\d+);w=(\d+)/.exec(decision.headers['RateLimit-Policy'] ?? '') ?? []
  return {
    maximumAvailable: decision.limit,
    currentlyAvailable: Math.min(decision.limit, decision.remaining + back),
    restoreRate: quota ? Number(quota) / Number(window) : null,
  }
}

module.exports = { limitGraphQL, requestedCost, actualCost, CostError }
