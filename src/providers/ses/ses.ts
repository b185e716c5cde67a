/** Amazon SES. The events of its API and of its SMTP interface have the endpoint `/ses` or an SQS queue. */
import type { Provider } from '../provider.ts';
import { SES_RELAY } from './profile.ts';

export const SES: Provider = {
  name: 'ses',
  title: 'Amazon SES',
  relay: SES_RELAY,
  events: null,
};
