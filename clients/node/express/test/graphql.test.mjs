// Counts the cost of queries, and runs the example server with real ones.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { parse } from 'graphql'
import { actualCost, requestedCost } from 'limitgate-express/graphql'

const cost = (query, options) => requestedCost(parse(query), options)

test('the cost of queries', () => {
  for (const [query, want, options] of [
    ['{ name }', 1],
    ['{ shop { name url } }', 1],
    ['{ shop { owner { name } } }', 2],
    ['{ a: shop { name } b: shop { name } }', 2],
    ['{ books(first: 5) { title } }', 5],
    ['{ books(last: 5) { title author { name } } }', 10],
    ['{ books(first: 5) { nodes { title } } }', 6],
    ['{ books(first: 5) { edges { cursor node { title } } pageInfo { hasNextPage } totalCount } }', 7],
    ['{ books(first: 5) { nodes { author { books(first: 4) { nodes { title } } } } } }', 1 + 5 * (1 + 1 + 1 + 4)],
    ['query ($n: Int = 3) { books(first: $n) { title } }', 3],
    ['query ($n: Int = 3) { books(first: $n) { title } }', 7, { variables: { n: 7 } }],
    ['query ($n: Int!) { books(first: $n) { title } }', 10],
    ['{ books(first: 0) { title } }', 1],
    ['{ books(first: -5) { title } }', 10],
    ['{ ...B ...B } fragment B on Query { shop { name } }', 2],
    ['{ ... on Query { shop { name } } }', 1],
    ['mutation { rename(name: "x") { name } }', 11],
    ['query A { shop { name } } query B { shop { owner { name } } }', 2],
    ['query A { shop { name } } query B { shop { owner { name } } }', 1, { operationName: 'A' }],
    ['{ ...nowhere }', 1],
  ]) assert.equal(cost(query, options), want, query)
})

test('bombs are bounded', () => {
  const deep = '{ a '.repeat(30) + '}'.repeat(30)
  assert.throws(() => cost(deep), /deeper than 20/)
  assert.throws(() => cost(`{ ${'a { b } '.repeat(20_000)} }`), /more than 10000 fields/)
  assert.throws(() => cost('{ ...A } fragment A on Q { a { ...B } } fragment B on Q { b { ...A } }'), /contains itself/)
  // 2^16 objects by fragments: the cost is found without looking at each.
  const doubling = Array.from({ length: 16 }, (_, i) => `fragment F${i} on Q { ...F${i + 1} ...F${i + 1} }`).join(' ')
  const began = process.cpuUsage()
  assert.equal(cost(`{ ...F0 } ${doubling} fragment F16 on Q { shop { name } }`), 2 ** 16)
  assert.ok(process.cpuUsage(began).user < 1_000_000)
  assert.equal(cost('{ books(first: 2147483647) { books(first: 2147483647) { title } } }'), 2147483647 * (1 + 2147483647))
})

test('the cost of answers', () => {
  assert.equal(actualCost({ shop: { name: 'x' } }), 1)
  assert.equal(actualCost({ books: { nodes: [{ title: 'a' }, { title: 'b' }] } }), 3)
  assert.equal(actualCost({ books: { edges: [{ node: { title: 'a' } }, { node: null }], pageInfo: {} } }), 3)
  assert.equal(actualCost({ grid: [[{ x: 1 }, null], [{ x: 2 }]] }), 2)
  assert.equal(actualCost(null), 0)
})

test('the example server', async (t) => {
  const server = spawn(process.execPath, [createRequire(import.meta.url).resolve('limitgate-express/package.json').replace('package.json', 'example/graphql.mjs')], { env: { ...process.env, PORT: '0' }, stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => server.kill())
  const [line] = await once(createInterface(server.stdout), 'line')
  const address = `http://127.0.0.1:${line.split(' ').at(-1)}/graphql`
  const ask = async (query, tenant = 'books', variables) => {
    const answer = await fetch(address, { method: 'POST', headers: { 'Content-Type': 'application/json', 'X-Tenant': tenant }, body: JSON.stringify({ query, variables }) })
    return [answer.status, await answer.json(), answer.headers]
  }
  const ten = '{ books(first: 10) { nodes { title } } }'
  const [status, first, headers] = await ask(ten)
  assert.equal(status, 200)
  assert.equal(first.data.books.nodes.length, 5) // there are no more
  // 11 were asked for, and 6 are in the answer: 5 come back at once.
  assert.deepEqual(first.extensions.cost, { requestedQueryCost: 11, actualQueryCost: 6, throttleStatus: { maximumAvailable: 20, currentlyAvailable: 14, restoreRate: 1 } })
  assert.match(headers.get('RateLimit'), /^"points"/)
  // What is not there is denied: nested books cost more than a bucket of 20 has.
  const nested = 'query ($n: Int!) { books(first: $n) { nodes { author { books(first: 3) { nodes { title } } } } } }'
  const [denied, body] = await ask(nested, 'books2', { n: 5 })
  assert.equal(denied, 200)
  assert.equal(body.data, undefined)
  assert.equal(body.errors[0].extensions.code, 'THROTTLED')
  assert.equal(body.extensions.cost.requestedQueryCost, 1 + 5 * (1 + 1 + 1 + 3))
  assert.equal((await ask('{ books(first: 5000) { nodes { title } } }'))[1].errors[0].extensions.code, 'MAX_COST_EXCEEDED')
  assert.equal((await ask('{ nope }'))[0], 400)
})
