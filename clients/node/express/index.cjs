'use strict'
// Middleware that asks Limitgate before each request: limit() for Express, limitFastify() and
// limitKoa() for Fastify and Koa, and retry() for clients that are denied.

const { asker, shown, DecisionError } = require('./ask.cjs')

const optionNames = ['client', 'url', 'authorization', 'timeout', 'tenant', 'op', 'ip', 'cost', 'dims', 'settle', 'failOpen', 'onError', 'onDenied']

// checked returns a request, or throws for one that no text and no number can be made of.
function checked(request) {
  if (typeof request.tenant !== 'string') throw new TypeError(`limitgate: the option tenant gives ${shown(request.tenant)} for this request: it has to give a text`)
  if (!Number.isInteger(request.cost)) throw new TypeError(`limitgate: the option cost gives ${shown(request.cost)} for this request: it has to give a whole number`)
  if (request.dims !== undefined && request.dims !== null && (typeof request.dims !== 'object' || Array.isArray(request.dims))) throw new TypeError(`limitgate: the option dims gives ${JSON.stringify(request.dims)} for this request: it has to give an object of names and texts, such as { user: 'u1' }`)
  return request
}

// limiter returns a function that decides about a request of any framework.
function limiter(options = {}) {
  for (const name of Object.keys(options)) {
    if (!optionNames.includes(name)) throw new TypeError(`limitgate: there is no option ${name}; the options are ${optionNames.join(', ')}`)
  }
  const { tenant, op, ip, cost = 1, dims, settle, failOpen = true } = options
  const onError = options.onError || logUndecided
  if (!tenant) throw new TypeError('limitgate: give a tenant: a text, or a function of the request')
  if (typeof tenant !== 'string' && typeof tenant !== 'function') throw new TypeError(`limitgate: the tenant is a ${typeof tenant}: give a text, or a function of the request`)
  for (const [name, value] of Object.entries({ settle, onError: options.onError, onDenied: options.onDenied })) {
    if (value && typeof value !== 'function') throw new TypeError(`limitgate: the option ${name} is ${shown(value)}: it is a function`)
  }
  if (typeof failOpen !== 'boolean') throw new TypeError(`limitgate: failOpen is ${JSON.stringify(failOpen)}: it is true or false`)
  const ask = asker(options)
  const of = (value, req) => (typeof value === 'function' ? value(req) : value)
  // decide resolves to a decision, or to undefined if the request goes on without one.
  return async function decide(req, own = {}) {
    const request = checked({
      tenant: await of(tenant, req), op: await of(op ?? own.op, req), ip: await of(ip ?? own.ip, req),
      cost: await of(cost, req), dims: await of(dims, req),
    })
    try {
      const decision = await (settle ? ask.reserve(request) : ask.check(request))
      if (settle && decision.id) decision.commit = (actual) => ask.commit(decision.id, Math.max(0, Math.ceil(actual)))
      return decision
    } catch (err) {
      // A mistake in the call is no way past the limits.
      if (err instanceof DecisionError) throw err
      if (!failOpen) throw Object.assign(err, { status: 503, statusCode: 503 })
      onError(err)
      return undefined
    }
  }
}

// settled commits what settle returns, and gives errors of both to onError: the answer has been sent.
async function settled(decision, { onError }, settle) {
  try {
    const given = await settle()
    const isNumber = typeof given === 'number' || typeof given === 'bigint' || (typeof given === 'string' && /^\s*-?\d+(\.\d+)?\s*$/.test(given)) // a header has a text
    const actual = isNumber ? Number(given) : NaN
    if (!Number.isFinite(actual)) throw new TypeError(`settle gives ${shown(given)}: it has to give a number`)
    await decision.commit(actual)
  } catch (err) {
    (onError || logUnsettled)(err)
  }
}

const logUndecided = (err) => console.error(`limitgate: a request goes on without a decision: ${err.message}`)
const logUnsettled = (err) => console.error(`limitgate: the true cost of a request is not settled: ${err.message}`)

// opOf makes an op of a method and a path that a client chose: it has no control characters, and is
// not too long to be one.
const opOf = (method, path) => Buffer.from(`${method} ${path}`.replace(/[\u0000-\u001f\u007f-\u009f]/g, '')).subarray(0, 1024).toString().replace(/\ufffd$/, '')

// A problem is the body of a denial, as RFC 9457 describes it.
const problem = (decision) => ({
  type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
  title: 'Request cannot be satisfied as assigned quota has been exceeded',
  status: 429,
  'violated-policies': decision.limitId ? [decision.limitId] : undefined,
})

// limit returns middleware for Express.
function limit(options) {
  const decide = limiter(options)
  const { settle } = options
  const onDenied = options.onDenied || deny
  return async function limitgate(req, res, next) {
    let decision
    try {
      decision = await decide(req, { op: () => opOf(req.method, `${req.baseUrl ?? ''}${req.route?.path ?? req.path}`), ip: () => req.ip ?? req.socket.remoteAddress })
      if (decision) {
        for (const [name, value] of Object.entries(decision.headers)) res.setHeader(name, value)
        if (!decision.allowed) return await onDenied(req, res, next, decision)
      }
    } catch (err) {
      return next(err)
    }
    // close comes once, whether the answer was sent or its client has gone.
    if (decision?.commit) res.once('close', () => settled(decision, options, () => settle(req, res)))
    req.limitgate = decision
    next()
  }
}

function deny(req, res, next, decision) {
  res.statusCode = 429
  res.setHeader('Cache-Control', 'no-store')
  res.setHeader('Content-Type', 'application/problem+json')
  res.end(JSON.stringify(problem(decision)))
}

// limitFastify returns an onRequest hook for Fastify, whose route is known there.
function limitFastify(options) {
  const decide = limiter(options)
  return async function limitgate(request, reply) {
    const decision = await decide(request, { op: () => opOf(request.method, request.routeOptions?.url ?? request.url.split('?')[0]), ip: () => request.ip })
    if (!decision) return
    reply.headers(decision.headers)
    if (!decision.allowed) {
      await reply.code(429).header('Cache-Control', 'no-store').type('application/problem+json').send(problem(decision))
      return
    }
    if (decision.commit) reply.raw.once('close', () => settled(decision, options, () => options.settle(request, reply)))
  }
}

// limitKoa returns middleware for Koa.
function limitKoa(options) {
  const decide = limiter(options)
  return async function limitgate(ctx, next) {
    const decision = await decide(ctx, { op: () => opOf(ctx.method, ctx._matchedRoute ?? ctx.path), ip: () => ctx.ip })
    if (!decision) return next()
    ctx.set(decision.headers)
    if (!decision.allowed) {
      ctx.set('Cache-Control', 'no-store')
      ctx.status = 429
      ctx.body = JSON.stringify(problem(decision))
      ctx.type = 'application/problem+json'
      return
    }
    if (decision.commit) ctx.res.once('close', () => settled(decision, options, () => options.settle(ctx)))
    await next()
  }
}

// retry calls attempt until it resolves to a response that is not 429 or 503, at most attempts
// times. It waits for Retry-After and some of a random time more, so that clients that were denied
// together do not come back together, and gives up where one wait would be longer than maxWait
// milliseconds. It resolves to the last response.
async function retry(attempt, { attempts = 4, base = 200, maxWait = 60_000, random = Math.random, wait = sleep } = {}) {
  for (let n = 1; ; n++) {
    const response = await attempt(n)
    if (response.status !== 429 && response.status !== 503 || n >= attempts) return response
    const asked = Number(response.headers.get('Retry-After'))
    // Full jitter: any time up to the bound that doubles, behind the time that was asked for.
    const ms = (asked > 0 ? asked * 1000 : 0) + random() * Math.min(maxWait, base * 2 ** (n - 1))
    if (!(ms <= maxWait)) return response
    await wait(ms)
  }
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

module.exports = { limit, limitFastify, limitKoa, limiter, retry, DecisionError }
