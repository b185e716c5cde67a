/** MailerSend, https://www.mailersend.com. */
import type { Provider } from '../provider.ts';
import { MAILERSEND_EVENTS } from './events.ts';
import { MAILERSEND_RELAY } from './profile.ts';

export const MAILERSEND: Provider = {
  name: 'mailersend',
  title: 'MailerSend',
  relay: MAILERSEND_RELAY,
  events: MAILERSEND_EVENTS,
};
