/** Amazon SES. The events of its API and of its SMTP interface arrive at the endpoint `/ses` or in an SQS queue. */
import type { Provider } from '../provider.ts';
import { SES_RELAY } from './profile.ts';

export const SES: Provider = {
  name: 'ses',
  title: 'Amazon SES',
  relay: SES_RELAY,
  events: null,
};
