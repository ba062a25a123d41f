// What every Node.js client is made to do; see ../go/steps, which does the same.
'use strict'
const fs = require('node:fs')
const readline = require('node:readline')

const checks = 100
const burst = 60
const check = (tenant, cost = '1') => ['RL.CHECK', tenant, '-', '-', cost]

function inOrder (i, reply) {
  const f = decision(reply)
  const want = i < burst ? [1, burst, burst - 1 - i] : [0, burst, 0]
  if (want.some((n, at) => n !== f[at]) || f[5] !== 'daily' || f[6] !== 'store') {
    throw new Error(`check ${i + 1} answers ${JSON.stringify(f)}`)
  }
}

function decision (reply) {
  if (!Array.isArray(reply) || reply.length !== 7) throw new Error(`no decision: ${JSON.stringify(reply)}`)
  return reply.map(field => Buffer.isBuffer(field) ? field.toString() : field)
}

async function admitted (client) {
  const f = decision(await client.call(check('other')))
  if (f[0] !== 1 || f[6] !== 'store') throw new Error(`answers ${JSON.stringify(f)}`)
}

const steps = {
  async check (client) {
    for (let i = 0; i < checks; i++) inOrder(i, await client.call(check('alone')))
  },

  async pipeline (client) {
    const replies = await client.pipeline(Array.from({ length: checks }, () => check('piped')))
    if (replies.length !== checks) throw new Error(`${replies.length} replies`)
    replies.forEach((reply, i) => inOrder(i, reply))
  },

  async denial (client) {
    const f = decision(await client.call(check('alone')))
    if (f[0] !== 0 || !(f[3] > 0)) throw new Error(`answers ${JSON.stringify(f)}`)
  },

  async error (client) {
    let refused
    try {
      await client.call(check('other', 'bad'))
    } catch (err) {
      refused = err
    }
    if (!refused) throw new Error('answers no error')
    if (!(refused instanceof client.refused)) throw new Error(`an error of type ${refused.constructor.name}: ${refused.message}`)
    if (!refused.message.includes('cost must be an integer between 1 and 2147483647')) throw new Error(`says ${refused.message}`)
    await admitted(client)
  },

  async dialect (client) {
    const reply = await client.call(['CL.THROTTLE', 'key', '5', '10', '60', '1'])
    if (JSON.stringify(reply) !== '[0,6,5,-1,6]') throw new Error(`answers ${JSON.stringify(reply)}`)
  },

  // One call may fail because the connection was killed; the next is decided.
  async reconnect (client) {
    console.log('kill')
    const answer = await line()
    if (answer !== 'killed') throw new Error(`told ${answer}`)
    await admitted(client).catch(() => admitted(client))
  }
}

function line () {
  return new Promise(resolve => {
    const input = readline.createInterface({ input: process.stdin })
    input.once('line', text => { input.close(); resolve(text) })
  })
}

// credentials returns those of the environment: tls = {ca, cert, key}, which is undefined
// without TLS, and login = {username, password}, which is empty without a user.
function credentials () {
  const { CLIENT_CA: ca, CLIENT_CERT: cert, CLIENT_KEY: key, CLIENT_USER: username, CLIENT_PASSWORD: password } = process.env
  const own = cert ? { cert: fs.readFileSync(cert), key: fs.readFileSync(key) } : {}
  return { tls: ca ? { ca: fs.readFileSync(ca), ...own } : undefined, login: username ? { username, password } : {} }
}

// main connects with open({host, port, cluster, resp, tls, login}), which returns
// {version, refused, call, pipeline, close}, and prints the results of the steps.
async function main (open) {
  const [host, port, mode, resp] = process.argv.slice(2)
  const saw = {}
  let client
  try {
    client = await open({ host, port: Number(port), cluster: mode === 'cluster', resp: resp === 'default' ? undefined : Number(resp), ...credentials() })
  } catch (err) {
    saw.check = `connect: ${err.message}`
  }
  for (const [name, run] of client ? Object.entries(steps) : []) {
    saw[name] = await run(client).then(() => 'ok', err => err.message)
  }
  console.log(JSON.stringify({ version: client ? client.version : '', steps: saw }))
  if (client) await client.close()
  process.exit(0)
}

module.exports = { main }
