/**
 * The baseline for the accept rate of Postrider: a bare Fastify route that has the schema of the public interface and
 * stores nothing. Prints the port of the server.
 */
import { randomUUID } from 'node:crypto';
import Fastify from 'fastify';
import { MailCreated, MailRequest } from '../src/http/openapi.ts';

const server = Fastify({ logger: false });
server.post(
  '/api/v1/send-mail',
  { schema: { body: MailRequest, response: { 201: MailCreated } } },
  async (_request, reply) => {
    reply.code(201);
    return { result: { id: randomUUID() } };
  },
);
await server.listen({ port: 0, host: '127.0.0.1' });
const address = server.server.address();
console.log(JSON.stringify({ port: typeof address === 'object' && address !== null ? address.port : 0 }));
process.once('SIGTERM', () => process.exit(0));
process.stdin.resume().once('end', () => process.exit(0));
