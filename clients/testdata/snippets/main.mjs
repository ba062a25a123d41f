// Calls the JavaScript code of docs/clients.md, with node-redis or with ioredis. It connects with
// TLS if the environment has a password.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createInterface } from 'node:readline/promises'
import Redis from 'ioredis'
import { createClient } from 'redis'
import { connect } from './connection.mjs'
import { limited } from './limited.mjs'
import { admit } from './snippet.mjs'

const [, , library, host, port] = process.argv
const password = process.env.CLIENT_PASSWORD
const client = await open()
console.log('take')
const input = createInterface({ input: process.stdin })
await input[Symbol.asyncIterator]().next()
const results = []
for (const op of ['later', 'never', 'GET /hourly']) results.push(await admit(client, 'snippet', op, '-'))
for (const op of ['GET /hourly', 'GET /free', 'long'.repeat(300)]) {
  const { status, headers } = await get(limited(client, () => 'snippet', op))
  results.push(status, headers.get('Retry-After') ?? '')
}
console.log(...results)
process.exit(0)

async function open () {
  if (library === 'ioredis') {
    const [ca, cert, key] = ['ca.pem', 'cert.pem', 'key.pem'].map(name => password && readFileSync(name))
    return new Redis({ host, port: Number(port), ...password && { username: 'service-a', password, tls: { ca, cert, key } } })
  }
  return password
    ? connect(host, Number(port), password)
    : createClient({ socket: { host, port: Number(port) } }).connect()
}

// Returns the response of a server that has a middleware.
async function get (middleware) {
  const server = createServer((req, res) => middleware(req, res, err => {
    res.statusCode = err ? 500 : 200
    res.end()
  }))
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  try {
    return await fetch(`http://127.0.0.1:${server.address().port}/`)
  } finally {
    server.close()
  }
}
