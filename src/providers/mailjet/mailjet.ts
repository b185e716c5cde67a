/** Mailjet, https://www.mailjet.com. */
import type { Provider } from '../provider.ts';
import { MAILJET_EVENTS } from './events.ts';
import { MAILJET_RELAY } from './profile.ts';

export const MAILJET: Provider = {
  name: 'mailjet',
  title: 'Mailjet',
  relay: MAILJET_RELAY,
  events: MAILJET_EVENTS,
};
