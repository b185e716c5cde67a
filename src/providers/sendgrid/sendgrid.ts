/** Twilio SendGrid, https://sendgrid.com. */
import type { Provider } from '../provider.ts';
import { SENDGRID_EVENTS } from './events.ts';
import { SENDGRID_RELAY } from './profile.ts';

export const SENDGRID: Provider = {
  name: 'sendgrid',
  title: 'SendGrid',
  relay: SENDGRID_RELAY,
  events: SENDGRID_EVENTS,
};
