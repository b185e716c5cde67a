/** Sinch Mailgun, https://www.mailgun.com. */
import type { Provider } from '../provider.ts';
import { MAILGUN_EVENTS } from './events.ts';
import { MAILGUN_RELAY } from './profile.ts';

export const MAILGUN: Provider = {
  name: 'mailgun',
  title: 'Mailgun',
  relay: MAILGUN_RELAY,
  events: MAILGUN_EVENTS,
};
