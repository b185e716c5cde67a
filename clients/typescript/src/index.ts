/**
 * The public names of the package. `createClient` creates the client that submits messages, and `verifyWebhook`
 * verifies webhooks. The package has no dependencies and uses only the web standards fetch, URL, WebCrypto,
 * AbortSignal and timers. Importing the package has no side effect.
 */
export {
  type Client,
  type ClientOptions,
  type Clock,
  createClient,
  type Fetch,
  type Message,
  type SendOptions,
  type SendResult,
} from './client.ts';
export {
  type ForbiddenReason,
  SendError,
  type SendErrorDetails,
  type SendErrorKind,
  WebhookError,
  type WebhookErrorKind,
} from './errors.ts';
export type * from './events.ts';
export { type VerifyOptions, verifyWebhook, type WebhookHeaders } from './webhook.ts';
