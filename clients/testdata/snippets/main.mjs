// Calls the README's JavaScript snippet.
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline/promises'
import { admit } from './snippet.mjs'

const { createClient } = createRequire(import.meta.url)('redis')
const [, , host, port] = process.argv
const client = await createClient({ socket: { host, port: Number(port) } }).connect()
console.log('take')
const input = createInterface({ input: process.stdin })
await input[Symbol.asyncIterator]().next()
console.log(await admit(client, 'snippet', 'later', '-'), await admit(client, 'snippet', 'never', '-'))
process.exit(0)
