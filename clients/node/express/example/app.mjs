// An Express application with limits.
//
//   limitgate serve
//   PORT=3000 LIMITGATE=127.0.0.1:6380 node app.mjs
//   curl -i localhost:3000/v1/items/7
import express from 'express'
import { Redis } from 'ioredis'
import { limit } from 'limitgate-express'

const [host, port] = (process.env.LIMITGATE ?? '127.0.0.1:6380').split(':')
const client = new Redis({ host, port: Number(port), maxRetriesPerRequest: 0 })
client.on('error', (err) => console.error('limitgate:', err.message || err.code)) // the reason that the client knows, such as WRONGPASS

const app = express()
app.get('/v1/items/:id', limit({ client, tenant: (req) => req.get('X-Tenant') ?? 'anonymous' }), (req, res) => res.send('an item\n'))
const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => console.log(`listening on ${server.address().port}`))
