mod hostile;
mod properties;
mod table;
