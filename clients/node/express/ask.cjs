'use strict'
// Asks Limitgate for decisions, by the Redis client that the application has, or over HTTP.

// DecisionError is a mistake in a call, such as a tenant that is too long. It is not that Limitgate
// cannot be reached.
class DecisionError extends Error {
  constructor(message) {
    super(message)
    this.name = 'DecisionError'
  }
}

// asker returns functions that ask over a client of ioredis or node-redis, or over the URL of
// limitgate serve --http. Timeout is in milliseconds.
function asker({ client, url, timeout = 250, authorization }) {
  if (!Number.isInteger(timeout) || timeout < 1 || timeout > maxTimeout) throw new TypeError(`limitgate: the timeout is ${shown(timeout)}: it is a whole number of milliseconds, such as 250 for a quarter of a second`)
  if (authorization && /[\u0000-\u001f\u007f]/.test(String(authorization).trim())) throw new TypeError('limitgate: the authorization has a line break or another control character inside')
  if (client && url) throw new TypeError('limitgate: give a client or a url, not both')
  if (client) return overRedis(client, timeout)
  if (url) {
    if (!/^https?:\/\/[^/]/.test(url)) throw new TypeError('limitgate: url is the address of limitgate serve --http, such as http://127.0.0.1:8080')
    return overHTTP(new URL(url), timeout, authorization)
  }
  throw new TypeError('limitgate: give a client of ioredis or node-redis, or the url of limitgate serve --http')
}

// shown returns a value as it stands in code, a text in its quotes.
const shown = (value) => (typeof value === 'string' ? JSON.stringify(value) : String(value))

// maxTimeout is an hour: timers take no more than 24 days.
const maxTimeout = 3_600_000

// sender returns a function that sends the words of a command by a client of ioredis or node-redis, whose last error ends with a reply.
function sender(client) {
  const end = () => lastErrors.has(client) && lastErrors.set(client, undefined)
  const answered = (reply) => {
    end()
    return reply
  }
  const failed = (err) => {
    if (/^(?!NOAUTH|WRONGPASS)[A-Z]+ /.test(err?.message ?? '')) end() // it is a reply
    throw err
  }
  if (typeof client?.call === 'function') return (words) => client.call(...words).then(answered, failed)
  if (typeof client?.sendCommand === 'function') return (words) => client.sendCommand(words).then(answered, failed)
  throw new TypeError(`limitgate: the client is ${typeof client === 'object' ? 'an object without call and sendCommand' : `a ${typeof client}`}: give a client of ioredis or node-redis, such as new Redis(6380)`)
}

function overRedis(client, timeout) {
  const send = sender(client)
  const at = addressOf(client)
  watch(client)
  const ask = (words) => within(timeout, client, send(words.map(String)).catch((err) => rethrow(err, at, client)))
  const subject = (r) => [r.tenant, r.op || '-', r.ip || '-']
  const dims = (r) => Object.entries(r.dims ?? {}).flatMap(([name, value]) => ['DIM', name, value])
  return {
    check: async (r) => decision(await ask(['RL.CHECK', ...subject(r), r.cost ?? 1, ...dims(r), 'HEADERS'])),
    reserve: async (r) => decision(await ask(['RL.RESERVE', ...subject(r), r.cost ?? 1, ...dims(r), 'HEADERS'])),
    commit: async (id, actual) => Number(await ask(['RL.COMMIT', id, actual])) === 1,
  }
}

// decision names the elements of a reply.
function decision([allowed, limit, remaining, retryAfter, resetAfter, limitId, source, fields, id]) {
  const headers = {}
  for (let i = 0; i < fields.length; i += 2) headers[String(fields[i])] = String(fields[i + 1])
  return {
    allowed: Number(allowed) === 1, limit: Number(limit), remaining: Number(remaining), retryAfterMs: Number(retryAfter),
    resetAfterMs: Number(resetAfter), limitId: String(limitId), source: String(source), headers, id: id ? String(id) : undefined,
  }
}

// addressOf names the address of a client in messages, or is empty: a cluster has several, and Sentinels name it.
function addressOf(client) {
  const options = client.options ?? {}
  const { host, port, path } = options.socket ?? options
  if (options.sentinels) return ''
  if (path) return ` at ${path}`
  if (!host && !port) return options.url ? ` at ${options.url.replace(/^.*@|^rediss?:\/\//, '')}` : ''
  return ` at ${host ?? 'localhost'}:${port ?? 6379}`
}

// rethrow tells error replies, which have a code word in front, from broken connections. A proxy that
// has as many clients as it takes cannot be reached.
function rethrow(err, at, client) {
  const message = err?.message ?? ''
  if (/^ERR unknown command ['`]?[RC]L\./i.test(message)) throw new DecisionError(`the server${at} is a Redis, and no limitgate: give a client that is connected to the address of limitgate serve --listen`)
  if (/^(NOAUTH|WRONGPASS) /.test(message)) throw new DecisionError(`Limitgate${at} refuses the client: ${message}`)
  if (/^(ERR(?! max number of clients)|NOPERM|WRONGTYPE|LG[A-Z]+) /.test(message)) throw new DecisionError(message)
  const refusal = refusalOf(client, at)
  if (refusal) throw refusal
  if (/^Stream isn't writeable|^The client is (?:closed|offline)/.test(message)) {
    const last = lastErrorOf(client)
    throw new Error(`the client has no connection to Limitgate${at}${last ? `: ${last}` : ' yet, or no more: is that the address of limitgate serve --listen?'}`, { cause: err })
  }
  const verb = /^[A-Z]+ /.test(message) ? 'answers' : 'does not answer'
  throw new Error(`Limitgate${at} ${verb}: ${message}`, { cause: err })
}

// lastErrors has the last error of each client, until one of its calls has a reply.
const lastErrors = new WeakMap()

// watch keeps the last error of a client: ioredis has the reply to a wrong password there, and its calls know only that there is no connection.
function watch(client) {
  if (lastErrors.has(client) || typeof client.on !== 'function') return
  lastErrors.set(client, undefined)
  client.on('error', (err) => lastErrors.set(client, err))
  client.on('ready', () => lastErrors.set(client, undefined))
}

// lastErrorOf returns the text of the last error of a client, or ''.
function lastErrorOf(client) {
  const err = lastErrors.get(client)
  return String(err?.message || err?.code || err || '')
}

// refusalOf returns the mistake for which Limitgate refuses the connection of a client, or undefined. What Sentinels refuse begins otherwise.
function refusalOf(client, at) {
  const [, reply] = /^(?:Ready check failed: ?)?((?:WRONGPASS|NOAUTH|NOPERM|ERR too many failed attempts) .*)/.exec(lastErrorOf(client)) ?? []
  return reply && new DecisionError(`Limitgate${at} refuses the client: ${reply}`)
}

function overHTTP(url, timeout, authorization) {
  const headers = { 'Content-Type': 'application/json' }
  if (authorization) headers.Authorization = authorization
  const ask = async (operation, body) => {
    const [answer, text] = await post(new URL('/v1/' + operation, url), { headers, body: JSON.stringify(body) }, timeout)
    if (answer.ok) return [JSON.parse(text), answer.headers]
    if (mistakes.includes(answer.status)) throw new DecisionError(`Limitgate answers ${answer.status}: ${text}`)
    throw new Error(`Limitgate answers ${answer.status}`)
  }
  const named = ([v, answered]) => {
    const fields = {}
    for (const name of passedOn) if (answered.has(name)) fields[name] = answered.get(name)
    return {
      allowed: v.allowed, limit: v.limit, remaining: v.remaining, retryAfterMs: v.retry_after_ms,
      resetAfterMs: v.reset_after_ms, limitId: v.limit_id, source: v.source, headers: fields, id: v.id,
    }
  }
  const request = ({ tenant, op, ip, dims }) => ({ tenant, op: op || undefined, ip: ip || undefined, dims })
  return {
    check: async (r) => named(await ask('check', { ...request(r), cost: r.cost ?? 1 })),
    reserve: async (r) => named(await ask('reserve', { ...request(r), estimate: r.cost ?? 1 })),
    commit: async (id, actual) => (await ask('commit', { id, actual }))[0].result === 'done',
  }
}

// post returns an answer and its body. Its error says why there is none: fetch has the reason in the cause.
async function post(url, { headers, body }, timeout) {
  try {
    const answer = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(timeout) })
    return [answer, await answer.text()]
  } catch (err) {
    if (err.name === 'TimeoutError') throw new Error(`Limitgate at ${url.origin} did not answer within ${timeout} ms`, { cause: err })
    throw new Error(`Limitgate at ${url.origin} does not answer: ${err.cause?.message || err.cause?.code || err.message}`, { cause: err })
  }
}

// The statuses of a mistake in a call. Any other than 200 says that Limitgate could not answer.
const mistakes = [400, 401, 403, 404, 405, 413]

const passedOn = [
  'RateLimit-Policy', 'RateLimit', 'RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset', 'RateLimit-Near-Limit',
  'X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset', 'X-RateLimit-Near-Limit', 'Retry-After',
]

// within rejects if a call takes longer than a time: some clients wait for a connection without end. Their last error says why.
function within(ms, client, promise) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => {
      const at = addressOf(client)
      const last = lastErrorOf(client)
      reject(refusalOf(client, at) ?? new Error(`Limitgate${at} did not answer within ${ms} ms${last && `: ${last}`}`))
    }, ms)
  })
  promise.catch(() => {}) // it may still fail when nobody waits for it
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

module.exports = { asker, sender, addressOf, rethrow, watch, shown, DecisionError }
