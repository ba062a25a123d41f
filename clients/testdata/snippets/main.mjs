// Calls the JavaScript code of docs/clients.md. It connects with TLS if the environment has a
// password.
import { createInterface } from 'node:readline/promises'
import { createClient } from 'redis'
import { connect } from './connection.mjs'
import { admit } from './snippet.mjs'

const [, , host, port] = process.argv
const password = process.env.CLIENT_PASSWORD
const client = password
  ? await connect(host, Number(port), password)
  : await createClient({ socket: { host, port: Number(port) } }).connect()
console.log('take')
const input = createInterface({ input: process.stdin })
await input[Symbol.asyncIterator]().next()
console.log(await admit(client, 'snippet', 'later', '-'), await admit(client, 'snippet', 'never', '-'))
process.exit(0)
