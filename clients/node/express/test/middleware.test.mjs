// Runs the middleware with real servers and clients. LIMITGATE and LIMITGATE_URL are the addresses of
// a limitgate that has limits.yaml.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { createRequire } from 'node:module'
import { EventEmitter, once } from 'node:events'
import net from 'node:net'
import { after, before, test } from 'node:test'
import express from 'express'
import { rateLimit } from 'express-rate-limit'
import Fastify from 'fastify'
import Redis from 'ioredis'
import Koa from 'koa'
import { createClient } from 'redis'
import { limit, limitFastify, limitKoa, retry } from 'limitgate-express'
import { LimitgateStore } from 'limitgate-express/store'

const [host, port] = process.env.LIMITGATE.split(':')
const url = process.env.LIMITGATE_URL
const clients = {}

before(async () => {
  clients.ioredis = new Redis({ host, port: Number(port), lazyConnect: true })
  clients.redis = createClient({ socket: { host, port: Number(port) } })
  clients.redis.on('error', () => {})
  await clients.redis.connect()
})

after(() => {
  clients.ioredis.disconnect()
  clients.redis.destroy()
})

// serve runs an application until the test ends, and returns its address.
async function serve(t, app) {
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.closeAllConnections?.() ?? undefined)
  t.after(() => server.close())
  return `http://127.0.0.1:${server.address().port}`
}

// expectTwo sends three requests, of which two are admitted.
async function expectTwo(address, init) {
  for (const want of [200, 200, 429]) {
    const answer = await fetch(address, init)
    const body = await answer.text()
    assert.equal(answer.status, want, body)
    assert.match(answer.headers.get('RateLimit'), /^"two";r=[01];t=\d+$/)
    assert.equal(answer.headers.get('RateLimit-Policy'), '"two";q=2;w=60')
    if (want === 429) {
      assert.ok(Number(answer.headers.get('Retry-After')) > 0)
      assert.equal(answer.headers.get('Cache-Control'), 'no-store')
      assert.deepEqual(JSON.parse(body)['violated-policies'], ['two'])
      assert.match(answer.headers.get('Content-Type'), /^application\/problem\+json/)
    }
  }
}

for (const [name, how] of Object.entries({ ioredis: () => ({ client: clients.ioredis }), 'node-redis': () => ({ client: clients.redis }), http: () => ({ url }) })) {
  test(`Express by ${name}`, async (t) => {
    const app = express()
    const reached = []
    app.get('/items/:id', limit({ ...how(), tenant: (req) => req.get('X-Tenant') }), (req, res) => {
      reached.push([req.params.id, req.limitgate.allowed])
      res.send('served')
    })
    const address = await serve(t, app)
    // The op is the template: items of different ids share a bucket.
    await expectTwo(`${address}/items/${name}`, { headers: { 'X-Tenant': `express-${name}` } })
    assert.equal((await fetch(`${address}/items/other`, { headers: { 'X-Tenant': `express-${name}` } })).status, 429)
    assert.deepEqual(reached, [[name, true], [name, true]])
  })

  test(`cost, dims and settle by ${name}`, async (t) => {
    const app = express()
    const settled = []
    app.get('/report', limit({
      ...how(), tenant: `shop-${name}`, op: 'GET /report', cost: async () => 15, dims: () => ({ user: 'u1' }),
      settle: (req, res) => res.getHeader('X-Used'), // a text
    }), (req, res) => {
      res.once('close', () => settled.push(true))
      res.setHeader('X-Used', '2').send('served')
    })
    const address = await serve(t, app)
    // 20 points: three times 15 at once do not fit, but 2 are used of each.
    for (let n = 0; n < 3; n++) {
      assert.equal((await fetch(`${address}/report`)).status, 200)
      await until(async () => {
        const peek = await (await fetch(`${url}/v1/peek?tenant=shop-${name}&limit=points`)).json()
        return peek.remaining >= 13
      })
    }
    assert.equal(settled.length, 3)
  })

  test(`a mistake in the call by ${name} is an error, and no way past the limits`, async (t) => {
    const app = express()
    app.use(limit({ ...how(), tenant: () => 't'.repeat(300) }))
    app.use((err, req, res, next) => res.status(500).send(err.message))
    const answer = await fetch(await serve(t, app))
    assert.equal(answer.status, 500)
    assert.match(await answer.text(), /invalid tenant/)
  })
}

// until waits for a condition of another process.
async function until(condition) {
  for (let n = 0; n < 500; n++) {
    if (await condition()) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  assert.fail('the condition did not come true')
}

test('a password that is refused is a mistake, until the connection is there', async (t) => {
  for (const more of [{}, { maxRetriesPerRequest: 0 }, { enableOfflineQueue: false, lazyConnect: true }]) {
    const client = new Redis({ host, port: Number(port), username: 'nobody', password: 'wrong', ...more })
    t.after(() => client.disconnect())
    const refused = once(client, 'error')
    if (more.lazyConnect) client.connect().catch(() => {})
    const ask = limit({ client, tenant: `refused-${Object.keys(more)}`, timeout: 1000 })
    const store = new LimitgateStore({ client })
    store.init({ limit: 10, windowMs: 60_000 })
    await assert.rejects(refused.then(([err]) => { throw err }), /WRONGPASS/)
    const err = await new Promise((resolve) => ask({ method: 'GET', path: '/', socket: {} }, { setHeader () {} }, resolve))
    assert.equal(err?.name, 'DecisionError', err?.message)
    assert.ok(err.message.startsWith(`Limitgate at ${host}:${port} refuses the client: WRONGPASS `), err.message)
    await assert.rejects(store.increment('a'), { name: 'DecisionError', message: err.message })
    delete client.options.username
    delete client.options.password
    await new Promise((resolve) => { client.once('ready', resolve) }) // past further errors
    assert.equal(await new Promise((resolve) => ask({ method: 'GET', path: '/', socket: {} }, { setHeader () {} }, resolve)), undefined)
  }
})

test('a refusal that is past, of a client that emits no ready', async (t) => {
  const silent = []
  let answer = () => Promise.resolve([1, 2, 1, 0, 0, 'two', 'store', [], null])
  const pool = Object.assign(new EventEmitter(), { sendCommand: () => answer() })
  const ask = limit({ client: pool, tenant: 'acme', timeout: 50, onError: (err) => silent.push(err.message) })
  const request = () => new Promise((resolve) => ask({ method: 'GET', path: '/', socket: {} }, { setHeader () {} }, resolve))
  pool.emit('error', new Error('WRONGPASS invalid username-password pair'))
  assert.equal(await request(), undefined) // the connections of the pool that are there decide
  answer = () => new Promise(() => {})
  assert.equal(await request(), undefined)
  assert.deepEqual(silent, ['Limitgate did not answer within 50 ms'])
  pool.emit('error', new Error('connect ECONNREFUSED'))
  assert.equal(await request(), undefined)
  assert.equal(silent[1], 'Limitgate did not answer within 50 ms: connect ECONNREFUSED')
  pool.emit('error', new Error('WRONGPASS invalid username-password pair'))
  assert.equal((await request()).name, 'DecisionError')
  answer = () => Promise.reject(new Error('ERR invalid tenant'))
  assert.equal((await request()).message, 'ERR invalid tenant')
  answer = () => new Promise(() => {})
  assert.equal(await request(), undefined) // an error reply, too, ends a refusal
  const without = limit({ client: pool, tenant: 'acme', timeout: 50, onError: null, onDenied: null, settle: null })
  const log = t.mock.method(console, 'error', () => {})
  assert.equal(await new Promise((resolve) => without({ method: 'GET', path: '/', socket: {} }, { setHeader () {} }, resolve)), undefined)
  assert.match(log.mock.calls[0].arguments[0], /a request goes on without a decision/)
})

test('a client of another port of limitgate', async (t) => {
  const client = new Redis(new URL(url).port, { maxRetriesPerRequest: 0, enableOfflineQueue: false })
  client.on('error', () => {})
  t.after(() => client.disconnect())
  await once(client, 'close')
  const errors = []
  const ask = limit({ client, tenant: 'acme', onError: (err) => errors.push(err.message) })
  assert.equal(await new Promise((resolve) => ask({ method: 'GET', path: '/', socket: {} }, {}, resolve)), undefined)
  assert.deepEqual(errors, [`the client has no connection to Limitgate at localhost:${new URL(url).port} yet, or no more: is that the address of limitgate serve --listen?`])
})

test('Express without Limitgate', async (t) => {
  // A server that accepts and never answers.
  const silent = net.createServer((socket) => socket.on('error', () => {}))
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  t.after(() => silent.close())
  const client = new Redis({ host: '127.0.0.1', port: silent.address().port, enableReadyCheck: false, maxRetriesPerRequest: 0 })
  client.on('error', () => {})
  t.after(() => client.disconnect())
  const closed = net.createServer().listen(0, '127.0.0.1')
  await once(closed, 'listening')
  const closedPort = closed.address().port
  const closedURL = `http://127.0.0.1:${closedPort}`
  await new Promise((resolve) => closed.close(resolve))
  const closedClient = new Redis({ host: '127.0.0.1', port: closedPort, maxRetriesPerRequest: 0, enableOfflineQueue: false, lazyConnect: true })
  limit({ client: closedClient, tenant: 'acme' }) // which keeps the last error
  await assert.rejects(closedClient.connect())
  t.after(() => closedClient.disconnect())
  const silentURL = `http://127.0.0.1:${silent.address().port}`
  for (const [how, want] of [
    [{ client }, `Limitgate at 127.0.0.1:${silent.address().port} did not answer within 100 ms`],
    [{ client: closedClient }, `the client has no connection to Limitgate at 127.0.0.1:${closedPort}: connect ECONNREFUSED 127.0.0.1:${closedPort}`],
    [{ url: closedURL }, `Limitgate at ${closedURL} does not answer: connect ECONNREFUSED ${closedURL.slice('http://'.length)}`],
    [{ url: silentURL }, `Limitgate at ${silentURL} did not answer within 100 ms`],
  ]) {
    for (const failOpen of [true, false]) {
      const app = express()
      const errors = []
      app.use(limit({ ...how, tenant: 'acme', timeout: 100, failOpen, onError: (err) => errors.push(err) }))
      app.use((req, res) => res.send('served'))
      app.use((err, req, res, next) => res.status(err.status).send('refused'))
      const answer = await fetch(await serve(t, app))
      assert.equal(answer.status, failOpen ? 200 : 503)
      assert.deepEqual(errors.map((err) => err.message), failOpen ? [want] : [])
    }
  }
})

test('mistakes of the application', async (t) => {
  for (const [options, want] of [
    [{ tenant: () => undefined }, /the option tenant gives undefined for this request: it has to give a text/],
    [{ tenant: 'a', dims: ['user'] }, /the option dims gives \["user"\] for this request: it has to give an object/],
    [{ tenant: 'a', cost: () => NaN }, /the option cost gives NaN for this request/],
    [{ tenant: 'a', cost: () => { throw new Error('of mine') } }, /of mine/],
    [{ tenant: 'mine', cost: 3, onDenied: () => { throw new Error('of mine') } }, /of mine/],
  ]) {
    const app = express()
    app.use(limit({ client: clients.ioredis, ...options }), (req, res) => res.send('served'))
    app.use((err, req, res, next) => res.status(500).send(err.message))
    const answer = await fetch(await serve(t, app))
    assert.equal(answer.status, 500)
    assert.match(await answer.text(), want)
  }
})

test('options that cannot be meant', () => {
  const client = clients.ioredis
  for (const [options, want] of [
    [{ client: 'redis://127.0.0.1:6380' }, /the client is a string: give a client of ioredis or node-redis/],
    [{ client: {} }, /the client is an object without call and sendCommand/],
    [{ client: 6380 }, /the client is a number/],
    [{ url, timeout: 0.25 }, /the timeout is 0.25: it is a whole number of milliseconds/],
    [{ client, timeout: '250ms' }, /the timeout is "250ms"/],
    [{ client, timeout: 0 }, /the timeout is 0/],
    [{ client, failOpen: 'no' }, /failOpen is "no": it is true or false/],
  ]) assert.throws(() => limit({ tenant: 't', ...options }), want)
  for (const [make, want] of [
    [() => new LimitgateStore(), /give a client/],
    [() => new LimitgateStore(client), /new LimitgateStore\(\{ client \}\)/],
    [() => new LimitgateStore(clients.redis), /new LimitgateStore\(\{ client \}\)/],
    [() => new LimitgateStore({ client: {} }), /the client is an object without call and sendCommand/],
    [() => new LimitgateStore({ client, prfix: 'a' }), /there is no option prfix; the options are client, prefix/],
  ]) assert.throws(make, want)
})

test('a Redis in the place of Limitgate', async (t) => {
  const reply = "-ERR unknown command 'RL.CHECK', with args beginning with: 'acme' \r\n"
  const plain = net.createServer((socket) => socket.on('data', (data) => socket.write(reply.repeat(data.toString().match(/^\*/gm).length))))
  plain.listen(0, '127.0.0.1')
  await once(plain, 'listening')
  t.after(() => plain.close())
  const client = new Redis({ host: '127.0.0.1', port: plain.address().port, enableReadyCheck: false })
  client.on('error', () => {})
  t.after(() => client.disconnect())
  const app = express()
  app.use(limit({ client, tenant: 'acme' }), (req, res) => res.send('served'))
  app.use((err, req, res, next) => res.status(500).send(`${err.name}: ${err.message}`))
  const answer = await fetch(await serve(t, app))
  assert.equal(answer.status, 500)
  assert.match(await answer.text(), new RegExp(`^DecisionError: the server at 127.0.0.1:${plain.address().port} is a Redis, and no limitgate: give a client`))
})

test('settle may fail', async (t) => {
  const errors = []
  const options = { client: clients.ioredis, tenant: 'failing', op: 'GET /failing', settle: () => { throw new Error('of mine') }, onError: (err) => errors.push(err.message) }
  const app = express()
  app.get('/', limit(options), (req, res) => res.send('served'))
  assert.equal((await fetch(await serve(t, app))).status, 200)
  const fastify = Fastify()
  fastify.addHook('onRequest', limitFastify({ ...options, tenant: 'failing2' }))
  fastify.get('/', async () => 'served')
  await fastify.listen({ port: 0, host: '127.0.0.1' })
  t.after(() => fastify.close())
  assert.equal((await fetch(`http://127.0.0.1:${fastify.server.address().port}/`)).status, 200)
  const koa = new Koa()
  koa.use(limitKoa({ ...options, tenant: 'failing3' }))
  koa.use((ctx) => { ctx.body = 'served' })
  assert.equal((await fetch(await serve(t, koa))).status, 200)
  await until(async () => errors.length === 3)
  assert.deepEqual(errors, ['of mine', 'of mine', 'of mine'])
  for (const [n, given] of [undefined, null, '', 'x', '  ', false, Infinity].entries()) {
    const app = express()
    app.get('/', limit({ ...options, tenant: `failing4${n}`, settle: async () => given }), (req, res) => res.send('served'))
    assert.equal((await fetch(await serve(t, app))).status, 200)
    await until(async () => errors.length === 4 + n)
    assert.equal(errors.at(-1), `settle gives ${typeof given === 'string' ? JSON.stringify(given) : given}: it has to give a number`)
  }
})

test('a client that goes away still settles', async (t) => {
  const app = express()
  let began
  const beginning = new Promise((resolve) => { began = resolve })
  app.get('/', limit({ client: clients.ioredis, tenant: 'aborted', op: 'GET /', cost: 20, settle: () => 1 }), () => began())
  const address = await serve(t, app)
  const controller = new AbortController()
  const asked = fetch(address, { signal: controller.signal }).catch(() => {})
  await beginning
  controller.abort()
  await asked
  await until(async () => (await (await fetch(`${url}/v1/peek?tenant=aborted&limit=points`)).json()).remaining >= 18)
})

test('a long path is limited too', async (t) => {
  const app = express()
  app.use(limit({ client: clients.ioredis, tenant: 'long' }), (req, res) => res.send('served'))
  const address = await serve(t, app)
  for (const want of [200, 200, 429]) {
    assert.equal((await fetch(`${address}/${'\u00e9'.repeat(900)}`)).status, want)
  }
})

test('onDenied replaces the answer', async (t) => {
  const app = express()
  app.get('/', limit({ client: clients.redis, tenant: 'denied', op: 'GET /denied', onDenied: (req, res, next, decision) => res.status(418).json(decision.limitId) }), (req, res) => res.send('served'))
  const address = await serve(t, app)
  await fetch(address)
  await fetch(address)
  const answer = await fetch(address)
  assert.equal(answer.status, 418)
  assert.equal(await answer.json(), 'two')
})

test('Fastify', async (t) => {
  const app = Fastify()
  app.addHook('onRequest', limitFastify({ client: clients.ioredis, tenant: 'fastify' }))
  app.get('/items/:id', async () => 'served')
  await app.listen({ port: 0, host: '127.0.0.1' })
  t.after(() => app.close())
  await expectTwo(`http://127.0.0.1:${app.server.address().port}/items/7`)
  assert.equal((await fetch(`http://127.0.0.1:${app.server.address().port}/items/8`)).status, 429)
})

test('Koa', async (t) => {
  const app = new Koa()
  app.use(limitKoa({ client: clients.redis, tenant: 'koa' }))
  app.use((ctx) => { ctx.body = 'served' })
  await expectTwo(await serve(t, app))
})

test('a store for express-rate-limit', async (t) => {
  for (const [name, client] of Object.entries(clients)) {
    const app = express()
    const store = new LimitgateStore({ client, prefix: `store-${name}:` })
    app.use(rateLimit({ windowMs: 60_000, limit: 2, standardHeaders: 'draft-6', legacyHeaders: false, store, validate: false, keyGenerator: (req) => req.get('X-Key') ?? 'k' }))
    app.use((req, res) => res.send('served'))
    const address = await serve(t, app)
    const remaining = []
    for (const want of [200, 200, 429]) {
      const answer = await fetch(address)
      assert.equal(answer.status, want)
      remaining.push(answer.headers.get('RateLimit-Remaining'))
    }
    assert.deepEqual(remaining, ['1', '0', '0'])
    assert.equal((await fetch(address, { headers: { 'X-Key': 'other' } })).status, 200)
    await store.resetKey('k')
    assert.equal((await fetch(address)).status, 200)
  }
  // The middleware logs an error of a store, and goes on.
  const log = t.mock.method(console, 'error', () => {})
  for (const wrong of [{ skipFailedRequests: true }, { limit: () => 5 }]) {
    const app = express()
    app.use(rateLimit({ store: new LimitgateStore({ client: clients.redis }), validate: false, ...wrong }))
    app.use((err, req, res, next) => res.status(500).send(err.message))
    const answer = await fetch(await serve(t, app))
    assert.equal(answer.status, 500)
    assert.match(await answer.text(), /^limitgate: (?:a bucket takes nothing back|limit is a function, and has to be a whole number)/)
  }
  assert.equal(log.mock.callCount(), 2)
})

test('the store of express-rate-limit without a Limitgate', async (t) => {
  const closed = net.createServer()
  closed.listen(0, '127.0.0.1')
  await once(closed, 'listening')
  const { port: closedPort } = closed.address()
  await new Promise((resolve) => { closed.close(resolve) })
  const client = new Redis({ host: '127.0.0.1', port: closedPort, enableOfflineQueue: false, maxRetriesPerRequest: 0, retryStrategy: () => null, lazyConnect: true })
  client.on('error', () => {})
  t.after(() => client.disconnect())
  const log = t.mock.method(console, 'error', () => {})
  for (const [passOnStoreError, status] of [[false, 500], [true, 200]]) {
    const app = express()
    app.use(rateLimit({ store: new LimitgateStore({ client }), passOnStoreError, validate: false, limit: 2, windowMs: 60_000 }))
    app.use((req, res) => res.send('served'))
    app.use((err, req, res, next) => res.status(500).send(err.message))
    const answer = await fetch(await serve(t, app))
    const text = await answer.text()
    assert.equal(answer.status, status, text)
    if (status === 500) {
      assert.ok(text.startsWith(`the client has no connection to Limitgate at 127.0.0.1:${closedPort} yet`), text)
      assert.ok(text.endsWith('; passOnStoreError: true admits requests meanwhile'), text)
    }
  }
  assert.ok(log.mock.callCount() <= 1)
})

test('retry waits for Retry-After and a random time more, and gives up', async () => {
  const response = (status, after) => ({ status, headers: new Headers(after === undefined ? {} : { 'Retry-After': String(after) }) })
  const run = async (responses, options) => {
    const waits = []
    const last = await retry(async (n) => responses[n - 1], { random: () => 0.5, wait: async (ms) => { waits.push(ms) }, ...options })
    return [last.status, waits]
  }
  assert.deepEqual(await run([response(200)]), [200, []])
  assert.deepEqual(await run([response(429, 2), response(200)]), [200, [2100]])
  assert.deepEqual(await run([response(429, 1), response(503), response(429), response(200)]), [200, [1100, 200, 400]])
  assert.deepEqual(await run([response(429, 1), response(429, 1), response(429, 1), response(429, 1)]), [429, [1100, 1200, 1400]])
  // More than a minute, and more than a timer holds.
  assert.deepEqual(await run([response(429, 61)]), [429, []])
  assert.deepEqual(await run([response(429, 2592000)]), [429, []])
  assert.deepEqual(await run([response(429, 'Wed, 21 Oct 2026 07:28:00 GMT'), response(200)]), [200, [100]])
  assert.deepEqual(await run([response(500)]), [500, []])
})

test('the example', async (t) => {
  const require = createRequire(import.meta.url)
  const app = spawn(process.execPath, [require.resolve('limitgate-express/package.json').replace('package.json', 'example/app.mjs')], { env: { ...process.env, PORT: '0' }, stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => app.kill())
  const [line] = await once(createInterface(app.stdout), 'line')
  await expectTwo(`http://127.0.0.1:${line.split(' ').at(-1)}/v1/items/7`, { headers: { 'X-Tenant': 'example' } })
})

test('CommonJS has the same functions', () => {
  const require = createRequire(import.meta.url)
  assert.equal(require('limitgate-express').limit, limit)
  assert.equal(require('limitgate-express/store').LimitgateStore, LimitgateStore)
  assert.throws(() => limit({ tenant: 'a' }), /give a client/)
  assert.throws(() => limit({ url }), /give a tenant/)
  assert.throws(() => limit(), /give a tenant/)
  for (const name of ['settle', 'onDenied', 'onError']) assert.throws(() => limit({ url, tenant: 'a', [name]: 503 }), new RegExp(`the option ${name} is 503: it is a function`))
  assert.throws(() => limit({ url, tenant: 'a', authorization: 'Bearer sesame\nX: y' }), (err) => /the authorization has a line break/.test(err.message) && !err.message.includes('sesame'))
  assert.doesNotThrow(() => limit({ url, tenant: 'a', authorization: 'Bearer sesame\n' }))
  assert.throws(() => limit({ url, tenant: 5 }), /the tenant is a number: give a text, or a function of the request/)
  assert.throws(() => limit({ url, tenant: 'a', failopen: false }), /there is no option failopen/)
  assert.throws(() => limit({ url: 'redis://127.0.0.1:6380', tenant: 'a' }), /such as http:/)
  assert.throws(() => limit({ url: '127.0.0.1:8080', tenant: 'a' }), /such as http:/)
  assert.throws(() => limit({ url, client: clients.redis, tenant: 'a' }), /not both/)
})
